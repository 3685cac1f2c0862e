// ${NAME} in the values of an experiment: finding it, and filling it in. Pure.
//
// NAME is a factor, or one of what the resolved run offers: run.directory and port.NAME (filled in by the agent),
// measure.seconds and warm_up.seconds (filled in when the run is resolved). $${ stands for a plain ${.
#pragma once

#include "common/experiment/yaml_tree.hpp"

#include <functional>
#include <map>
#include <set>

namespace perfrig {

struct Reference {
    std::string name;   // what stands between the braces
    std::size_t at = 0; // byte within the text
    bool closed = true; // false: "${" without "}"
};
std::vector<Reference> references_in(std::string_view text);

// Where a byte of a scalar's text stands in the file, as nearly as can be told.
YamlMark mark_within(const YamlNode& scalar, std::size_t at);

// The names in all scalars below a node (not in its keys).
std::set<std::string> names_in(const YamlNode& node);

constexpr std::size_t most_substituted_bytes = 1 << 20; // of one value

// A name that `values` doesn't know stays as it is. nullopt: the text grew beyond most_substituted_bytes.
std::optional<std::string> substitute(std::string_view text, const std::map<std::string, std::string>& values);
// The same for every scalar below a node; what grew too large is a fault and stays empty. Substituted scalars count as
// quoted: a level is text.
YamlNode substitute(const YamlNode& node, const std::map<std::string, std::string>& values, std::vector<Fault>& faults);

} // namespace perfrig
