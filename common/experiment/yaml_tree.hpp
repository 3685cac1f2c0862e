// A YAML document as a tree that remembers where everything stood. Built from the parser's events, not from its nodes,
// because nodes lose duplicate keys, positions, and how a scalar was written ("3.10" must stay 3.10, "off" is no
// boolean). A small, safe part of YAML is taken: no anchors, aliases, merge keys or tags (so no text can grow when it
// is read), one document, keys that are plain text. Used for experiment files and for the programs' configuration.
#pragma once

#include "common/experiment/fault.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

struct YamlMark {
    int line = 0; // from 1; 0: not from the text
    int column = 0;
    friend bool operator==(const YamlMark&, const YamlMark&) = default;
};

struct YamlEntry;

struct YamlNode {
    enum class Kind { null, scalar, list, map };
    Kind kind = Kind::null;
    std::string text;    // of a scalar: its text, as written (quotes and escapes undone)
    bool quoted = false; // of a scalar: in quotes or a block (| or >), so always text
    YamlMark mark;
    int block_indent = 0;           // of a scalar in a block (|): the columns that its lines are indented by; else 0
    std::vector<YamlNode> items;    // of a list
    std::vector<YamlEntry> entries; // of a map, in the order written; keys are unique

    bool is_null() const { return kind == Kind::null; }
    bool is_scalar() const { return kind == Kind::scalar; }
    bool is_list() const { return kind == Kind::list; }
    bool is_map() const { return kind == Kind::map; }
    const YamlNode* find(std::string_view key) const; // nullptr: no such key, or no map
    YamlNode* find(std::string_view key);
    const YamlEntry* entry(std::string_view key) const;

    static YamlNode scalar(std::string text, bool quoted = false, YamlMark mark = {});
};

struct YamlEntry {
    std::string key;
    YamlMark key_mark;
    YamlNode value;
};

struct YamlLimits {
    std::size_t most_bytes = 1 << 20;
    int deepest_nesting = 32;
    std::size_t most_nodes = 100'000;
};

struct YamlOutcome {
    std::optional<YamlNode> tree; // missing if any fault stopped the reading; an empty text is a null node
    std::vector<Fault> faults;    // duplicate keys, anchors and tags are all collected; broken syntax ends the reading
};

YamlOutcome parse_yaml(std::string_view text, const YamlLimits& limits = {});

// The plain value, for configuration: YAML 1.2 core schema (null and ~; true and false, also capitalised; decimal, 0x
// and 0o integers; floats). Quoted scalars are strings. Everything else, "yes" and "off" and "30s" too, is a string.
Json to_json(const YamlNode& node);

// Block-style YAML that parse_yaml reads as the same tree (positions apart).
std::string to_yaml(const YamlNode& node);

// Sets scalars by path, before anything is validated: {"phases.measure=4s", "replicates=3"}. A path must name a scalar
// that is there, or start with one of `may_add` (whole keys: "replicates", or "phases." for any key below it). A faulty
// override changes nothing; its Fault has line 0 and the override's path.
std::vector<Fault> apply_overrides(YamlNode& tree, const std::vector<std::string>& overrides,
                                   const std::vector<std::string>& may_add);

} // namespace perfrig
