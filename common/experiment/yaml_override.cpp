#include "common/experiment/yaml_tree.hpp"

#include <algorithm>

namespace perfrig {

namespace {

Fault refused(std::string path, std::string message, std::string remedy) {
    return {0, 0, std::move(path), std::move(message), std::move(remedy)};
}

std::vector<std::string> keys_of(const YamlNode& map) {
    std::vector<std::string> out;
    for (const YamlEntry& entry : map.entries) out.push_back(entry.key);
    return out;
}

// The entry whose key begins the path; keys may hold dots ("files.nginx.conf"), so the longest one wins.
YamlEntry* step(YamlNode& map, std::string_view path) {
    YamlEntry* best = nullptr;
    for (YamlEntry& entry : map.entries) {
        const bool begins =
            path.starts_with(entry.key) && (path.size() == entry.key.size() || path[entry.key.size()] == '.');
        if (begins && (!best || entry.key.size() > best->key.size())) best = &entry;
    }
    return best;
}

bool may_be_added(std::string_view path, const std::vector<std::string>& may_add) {
    return std::any_of(may_add.begin(), may_add.end(), [&](const std::string& allowed) {
        if (!allowed.ends_with('.')) return path == allowed;
        return path.starts_with(allowed) && path.size() > allowed.size() &&
               path.find('.', allowed.size()) == std::string_view::npos;
    });
}

bool list_of_scalars(const YamlNode& node) {
    return node.is_list() &&
           std::all_of(node.items.begin(), node.items.end(), [](const YamlNode& i) { return i.is_scalar(); });
}

void forget_marks(YamlNode& node) {
    node.mark = {};
    for (YamlNode& item : node.items) forget_marks(item);
}

std::optional<Fault> apply(YamlNode& tree, std::string_view path, std::string_view text,
                           const std::vector<std::string>& may_add) {
    const std::string shown = "--set " + std::string(path);
    YamlNode* at = &tree;
    std::string_view rest = path;
    while (!rest.empty()) {
        if (at->is_null()) at->kind = YamlNode::Kind::map;
        if (!at->is_map())
            return refused(std::string(path),
                           shown + ": '" + std::string(rest) + "' lies below a value that holds no keys",
                           "name a scalar");
        YamlEntry* next = step(*at, rest);
        if (!next) {
            if (!may_be_added(path, may_add)) {
                const std::string near = nearest_word(rest.substr(0, rest.find('.')), keys_of(*at));
                return refused(std::string(path), shown + ": the experiment has no such value",
                               near.empty() ? "set one that is there" : "did you mean '" + near + "'?");
            }
            const std::string key(rest.substr(0, rest.find('.')));
            at->entries.push_back({key, {}, {}});
            next = &at->entries.back();
        }
        at = &next->value;
        rest.remove_prefix(std::min(rest.size(), next->key.size() + 1));
    }
    if (at->is_map())
        return refused(std::string(path), shown + ": that is a map, and only single values can be set",
                       "name a value in it");
    if (at->is_list()) {
        YamlOutcome value = parse_yaml(text);
        if (!value.tree || !value.faults.empty() || !list_of_scalars(*value.tree))
            return refused(std::string(path), shown + ": that is a list", "write it as [a, b, c]");
        forget_marks(*value.tree);
        *at = std::move(*value.tree);
        return std::nullopt;
    }
    *at = YamlNode::scalar(std::string(text));
    return std::nullopt;
}

} // namespace

std::vector<Fault> apply_overrides(YamlNode& tree, const std::vector<std::string>& overrides,
                                   const std::vector<std::string>& may_add) {
    std::vector<Fault> faults;
    YamlNode changed = tree;
    for (const std::string& text : overrides) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            faults.push_back(refused({}, "--set " + text + " is no PATH=VALUE", "write for example phases.measure=4s"));
            continue;
        }
        const bool odd = std::any_of(text.begin(), text.end(), [](char c) {
            return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
        });
        if (odd) {
            faults.push_back(refused(text.substr(0, equals), "--set holds a control character", "take it out"));
            continue;
        }
        if (auto fault = apply(changed, std::string_view(text).substr(0, equals),
                               std::string_view(text).substr(equals + 1), may_add))
            faults.push_back(std::move(*fault));
    }
    if (faults.empty()) tree = std::move(changed);
    return faults;
}

} // namespace perfrig
