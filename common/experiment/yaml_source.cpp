#include "common/experiment/yaml_source.hpp"

#include <algorithm>
#include <cstdio>

namespace perfrig {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The length of the UTF-8 character at `at`, or 0 if there is none (RFC 3629: no surrogates, nothing overlong).
std::size_t utf8_length(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
    };
    const auto tail = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i <= to; ++i)
            if ((byte(i) & 0xC0) != 0x80) return false;
        return true;
    };
    const unsigned b = byte(0), c = byte(1);
    if (b < 0x80) return 1;
    if (b >= 0xC2 && b <= 0xDF) return tail(1, 1) ? 2 : 0;
    if (b >= 0xE0 && b <= 0xEF) {
        if ((b == 0xE0 && c < 0xA0) || (b == 0xED && c > 0x9F)) return 0;
        return tail(1, 2) ? 3 : 0;
    }
    if (b >= 0xF0 && b <= 0xF4) {
        if ((b == 0xF0 && c < 0x90) || (b == 0xF4 && c > 0x8F)) return 0;
        return tail(1, 3) ? 4 : 0;
    }
    return 0;
}

} // namespace

YamlSource::YamlSource(std::string_view text) : text_(text), line_starts_{0} {
    bool ascii = true;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n') line_starts_.push_back(i + 1);
        if (static_cast<unsigned char>(text[i]) >= 0x80) ascii = false;
    }
    if (ascii) return;
    continuation_bytes_.resize(text.size() + 1);
    for (std::size_t i = 0; i < text.size(); ++i)
        continuation_bytes_[i + 1] = continuation_bytes_[i] + (is_continuation(text[i]) ? 1 : 0);
}

std::optional<Fault> YamlSource::bad_bytes() const {
    for (std::size_t i = 0; i < text_.size();) {
        const std::size_t length = utf8_length(text_, i);
        const auto byte = static_cast<unsigned char>(text_[i]);
        const bool control =
            length == 1 && ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F);
        if (length == 0 || control) {
            char shown[8];
            std::snprintf(shown, sizeof shown, "0x%02X", byte);
            const YamlMark at = mark(static_cast<int>(i));
            const std::string where = std::string("byte ") + shown + " at offset " + std::to_string(i);
            return Fault{at.line,
                         at.column,
                         {},
                         where + (control ? " is a control character" : " is not UTF-8"),
                         control ? "take it out" : "save the file as UTF-8"};
        }
        i += length;
    }
    return std::nullopt;
}

YamlMark YamlSource::mark(int byte) const {
    const std::size_t at = std::min(static_cast<std::size_t>(std::max(byte, 0)), text_.size());
    const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), at);
    const std::size_t start = *(next - 1);
    std::size_t column = at - start;
    if (!continuation_bytes_.empty()) column -= continuation_bytes_[at] - continuation_bytes_[start];
    return {static_cast<int>(next - line_starts_.begin()), static_cast<int>(column) + 1};
}

char YamlSource::at(int byte) const {
    return byte >= 0 && static_cast<std::size_t>(byte) < text_.size() ? text_[static_cast<std::size_t>(byte)] : '\0';
}

bool YamlSource::quote_is_closed(int opening_byte) const {
    const auto start = static_cast<std::size_t>(opening_byte);
    const char quote = text_[start];
    for (std::size_t i = start + 1; i < text_.size(); ++i) {
        if (quote == '"' && text_[i] == '\\')
            ++i;
        else if (text_[i] == quote) {
            if (quote == '"' || i + 1 >= text_.size() || text_[i + 1] != '\'') return true;
            ++i; // '' within single quotes is one quote
        }
    }
    return false;
}

int YamlSource::block_indent(int byte) const {
    const YamlMark opening = mark(byte);
    const std::string_view header = line_text(opening.line);
    const std::string_view rest =
        std::string_view(header).substr(header.rfind('|') == std::string_view::npos ? 0 : header.rfind('|'));
    if (rest.find_first_of("123456789") != std::string_view::npos) return 0;
    for (int line = opening.line + 1; line <= static_cast<int>(line_starts_.size()); ++line) {
        const std::string_view text = line_text(line);
        const std::size_t first = text.find_first_not_of(" \r");
        if (first != std::string_view::npos) return static_cast<int>(first);
    }
    return 0;
}

std::string_view YamlSource::line_text(int line) const {
    const auto index = static_cast<std::size_t>(line - 1);
    if (line < 1 || index >= line_starts_.size()) return {};
    const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] - 1 : text_.size();
    return text_.substr(line_starts_[index], end - line_starts_[index]);
}

Fault YamlSource::explain(int byte, int line, const std::string& message, std::optional<YamlMark> opened) const {
    // Some of the parser's marks carry no byte; the line alone then has to do.
    const YamlMark at = byte >= 0 ? mark(byte) : YamlMark{line + 1, 1};
    const std::string_view here = line_text(at.line);
    const std::string_view indentation = here.substr(0, std::min(here.find_first_not_of(" \t\r"), here.size()));
    const std::string begun =
        opened ? " begun at line " + std::to_string(opened->line) + ", column " + std::to_string(opened->column) : "";
    const auto says = [&](std::string_view part) { return message.find(part) != std::string::npos; };
    const auto fault = [&](std::string what, std::string remedy) {
        return Fault{at.line, at.column, {}, std::move(what), std::move(remedy)};
    };
    if (const std::size_t tab = indentation.find('\t'); tab != std::string_view::npos)
        return {at.line, static_cast<int>(tab) + 1, {}, "a tab in the indentation", "indent with spaces"};
    if (says("alias") || says("anchor is not defined"))
        return fault("aliases (*name) are not taken here", "write the value out");
    if (says("flow not found")) {
        if (here.find("${") != std::string_view::npos)
            return fault("the [ or {" + begun + " is not closed where it should be",
                         "within [ ] and { } write \"${name}\" in quotes");
        return fault("the [ or {" + begun + " is never closed", "close it, and separate its values by commas");
    }
    if (says("illegal map value"))
        return fault("a ':' can't stand here",
                     "is the indentation off, a ':' missing in the line above, or a value with ': ' not in quotes?");
    if (says("illegal flow end"))
        return fault("a ] or } that closes nothing", "take it out, or put the value in quotes");
    if (says("end of map not found") || says("end of sequence not found"))
        return fault("this line does not continue what was" + begun, "align it with its neighbours");
    if (says("unknown token")) return fault("a plain value can't begin like this", "put it in quotes");
    if (says("unknown escape")) return fault(message, "write \\\\ for a backslash, or use single quotes");
    return fault("broken YAML: " + message, "");
}

} // namespace perfrig
