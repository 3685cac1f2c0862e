#include "common/experiment/references.hpp"

#include <algorithm>

namespace perfrig {

namespace {

struct Piece {
    std::string_view plain; // text before the reference
    std::optional<Reference> reference;
};

// Calls `each` for every piece in order; "$${" comes as plain text "${".
template <class Each> void for_each_piece(std::string_view text, Each each) {
    std::size_t from = 0;
    for (std::size_t at = 0; (at = text.find("${", at)) != std::string_view::npos;) {
        if (at > from && text[at - 1] == '$') { // escaped: leave out one of the two $
            each(Piece{text.substr(from, at - 1 - from), std::nullopt});
            from = at;
            at += 2;
            continue;
        }
        const std::size_t end = text.find('}', at);
        const std::size_t name_end = end == std::string_view::npos ? text.size() : end;
        Reference reference{std::string(text.substr(at + 2, name_end - at - 2)), at, end != std::string_view::npos};
        each(Piece{text.substr(from, at - from), std::move(reference)});
        from = at = end == std::string_view::npos ? text.size() : end + 1;
    }
    each(Piece{text.substr(std::min(from, text.size())), std::nullopt});
}

void collect(const YamlNode& node, std::set<std::string>& names) {
    if (node.is_scalar() && node.text.find("${") != std::string::npos)
        for (Reference& reference : references_in(node.text)) names.insert(std::move(reference.name));
    for (const YamlNode& item : node.items) collect(item, names);
    for (const YamlEntry& entry : node.entries) collect(entry.value, names);
}

} // namespace

std::vector<Reference> references_in(std::string_view text) {
    std::vector<Reference> out;
    for_each_piece(text, [&](Piece piece) {
        if (piece.reference) out.push_back(std::move(*piece.reference));
    });
    return out;
}

YamlMark mark_within(const YamlNode& scalar, std::size_t at) {
    if (scalar.block_indent == 0) return scalar.mark;
    const std::string_view before = std::string_view(scalar.text).substr(0, at);
    const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const auto characters = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return {scalar.mark.line + 1 + static_cast<int>(lines), scalar.block_indent + static_cast<int>(characters) + 1};
}

std::set<std::string> names_in(const YamlNode& node) {
    std::set<std::string> names;
    collect(node, names);
    return names;
}

std::optional<std::string> substitute(std::string_view text, const std::map<std::string, std::string>& values) {
    std::string out;
    bool fits = true;
    for_each_piece(text, [&](const Piece& piece) {
        if (!fits) return;
        out += piece.plain;
        if (piece.reference) {
            const auto value = values.find(piece.reference->name);
            if (value != values.end())
                out += value->second;
            else
                out += "${" + piece.reference->name + (piece.reference->closed ? "}" : "");
        }
        fits = out.size() <= most_substituted_bytes;
    });
    if (!fits) return std::nullopt;
    return out;
}

YamlNode substitute(const YamlNode& node, const std::map<std::string, std::string>& values,
                    std::vector<Fault>& faults) {
    if (node.is_scalar()) {
        if (node.text.find("${") == std::string::npos) return node;
        std::optional<std::string> text = substitute(node.text, values);
        if (!text)
            faults.push_back({node.mark.line,
                              node.mark.column,
                              {},
                              "the value grows beyond 1 MiB when its factors are filled in",
                              "use shorter levels"});
        return YamlNode::scalar(std::move(text).value_or(std::string()), true, node.mark);
    }
    YamlNode out;
    out.kind = node.kind;
    out.mark = node.mark;
    out.items.reserve(node.items.size());
    out.entries.reserve(node.entries.size());
    for (const YamlNode& item : node.items) out.items.push_back(substitute(item, values, faults));
    for (const YamlEntry& entry : node.entries)
        out.entries.push_back({entry.key, entry.key_mark, substitute(entry.value, values, faults)});
    return out;
}

} // namespace perfrig
