// What becomes of a tree: a plain value, or a text again.
#include "common/experiment/yaml_tree.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace perfrig {

namespace {

template <class T> std::optional<T> whole(std::string_view text, int base) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

// YAML 1.2.2, section 10.3.2: [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_float(std::string_view text) {
    std::size_t i = 0, digits = 0;
    const auto digit = [&] { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    while (digit()) ++i, ++digits;
    if (i < text.size() && text[i] == '.') {
        ++i;
        while (digit()) ++i, ++digits;
    }
    if (digits == 0) return false;
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        ++i;
        if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
        const std::size_t from = i;
        while (digit()) ++i;
        if (i == from) return false;
    }
    return i == text.size();
}

Json scalar_to_json(const YamlNode& node) {
    const std::string& text = node.text;
    if (node.quoted) return text;
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    std::string_view number = text;
    if (number.starts_with("0x"))
        if (const auto value = whole<std::int64_t>(number.substr(2), 16)) return *value;
    if (number.starts_with("0o"))
        if (const auto value = whole<std::int64_t>(number.substr(2), 8)) return *value;
    if (number.starts_with('+')) number.remove_prefix(1);
    if (const auto value = whole<std::int64_t>(number, 10)) return *value;
    if (looks_like_float(text)) {
        double value = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
        if (error == std::errc() && end == number.data() + number.size() && std::isfinite(value)) return value;
    }
    return text;
}

std::string double_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\', out += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\x%02X", static_cast<unsigned char>(c));
            out += escape;
        } else
            out += c;
    }
    return out + '"';
}

// Plain only where no reader of YAML could take it for anything else.
bool safe_plain(std::string_view text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("._/$+-{}=@,()").find(c) != std::string_view::npos;
    };
    if (text.empty() || !std::all_of(text.begin(), text.end(), plain)) return false;
    return std::string_view("-{},=@").find(text.front()) == std::string_view::npos ||
           (text.front() == '-' && text.size() > 1 && text[1] >= '0' && text[1] <= '9');
}

bool means_null(std::string_view text) { return text == "null" || text == "Null" || text == "NULL"; }

bool fits_literal_block(std::string_view text) {
    if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n') return false;
    if (text.front() == ' ' || text.front() == '\n' || text.front() == '\t') return false;
    return std::none_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    });
}

void write(std::string& out, const YamlNode& node, std::size_t depth);

std::string indent(std::size_t depth) { return std::string(depth * 2, ' '); }

void write_scalar(std::string& out, const YamlNode& node, std::size_t depth) {
    if (!node.quoted && safe_plain(node.text) && !means_null(node.text)) {
        out += node.text;
    } else if (fits_literal_block(node.text)) {
        out += '|';
        std::string_view rest = node.text;
        while (!rest.empty()) {
            const std::size_t end = rest.find('\n');
            out += '\n';
            if (end > 0) out += indent(depth), out += rest.substr(0, end);
            rest.remove_prefix(end + 1);
        }
    } else {
        out += double_quoted(node.text);
    }
}

// Written after "key:" or "-", on the same line where it fits there; ends without a line end.
void write(std::string& out, const YamlNode& node, std::size_t depth) {
    switch (node.kind) {
    case YamlNode::Kind::null: out += " null"; break;
    case YamlNode::Kind::scalar:
        out += ' ';
        write_scalar(out, node, depth);
        break;
    case YamlNode::Kind::list:
        if (node.items.empty()) out += " []";
        for (const YamlNode& item : node.items) {
            out += "\n" + indent(depth) + "-";
            write(out, item, depth + 1);
        }
        break;
    case YamlNode::Kind::map:
        if (node.entries.empty()) out += " {}";
        for (const YamlEntry& entry : node.entries) {
            const bool plain = safe_plain(entry.key) && !means_null(entry.key);
            out += "\n" + indent(depth) + (plain ? entry.key : double_quoted(entry.key)) + ":";
            write(out, entry.value, depth + 1);
        }
        break;
    }
}

} // namespace

Json to_json(const YamlNode& node) {
    switch (node.kind) {
    case YamlNode::Kind::null: return nullptr;
    case YamlNode::Kind::scalar: return scalar_to_json(node);
    case YamlNode::Kind::list: {
        Json out = Json::array();
        for (const YamlNode& item : node.items) out.push_back(to_json(item));
        return out;
    }
    case YamlNode::Kind::map: break;
    }
    Json out = Json::object();
    for (const YamlEntry& entry : node.entries) out[entry.key] = to_json(entry.value);
    return out;
}

std::string to_yaml(const YamlNode& node) {
    std::string out;
    write(out, node, 0);
    out.erase(0, 1); // what separates a value from its key
    return out + "\n";
}

} // namespace perfrig
