// The experiment file, version 1: what a person writes, read and checked. All checks are made here, for every level of
// every factor, so that what is queued can run: expand() and resolve() fail only for reasons that lie outside the file
// (the size that was asked for, the machine's profile).
//
// Values may hold ${FACTOR}, which becomes the cell's level. ${run.directory} and ${port.NAME} are left for the agent;
// ${measure.seconds} and ${warm_up.seconds} become numbers here. $${ stands for a plain ${.
#pragma once

#include "common/experiment/fault.hpp"
#include "common/experiment/yaml_tree.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

struct Factor {
    std::string name;
    std::vector<std::string> levels; // in the text of the file; unique, at least one
    friend bool operator==(const Factor&, const Factor&) = default;
};

// Which machine may run it: one by name, or any that has all the labels. Both empty: any machine.
struct MachineWish {
    std::string name;
    std::map<std::string, std::string> labels;
    bool any() const { return name.empty() && labels.empty(); }
    friend bool operator==(const MachineWish&, const MachineWish&) = default;
};

// interleaved: replicate by replicate through all cells. random: the same, shuffled within each replicate.
// as_written: all replicates of a cell, then the next.
enum class RunOrder { interleaved, random, as_written };
std::string_view to_string(RunOrder order); // "interleaved", "random", "as-written"

struct Experiment {
    std::string name; // "web/scaling"
    std::string description;
    MachineWish machine;
    std::vector<Factor> factors; // in the order written: the first one changes slowest
    int replicates = 1;          // 1 .. 1000
    RunOrder order = RunOrder::interleaved;
    std::optional<std::uint64_t> seed; // of the random order; 0 .. 2^53 - 1; not given: derived from the definition
    std::string definition;            // the effective text: the file, or, with overrides, what they made of it
    std::string definition_sha256;     // of the tree: comments and layout don't change it
    std::vector<std::string> secrets;  // values to redact wherever the definition is shown: redact(definition, secrets)

    // For resolve() alone: the checked tree, whose values still hold ${FACTOR}.
    std::shared_ptr<const YamlNode> tree;
};

struct ParseOutcome {
    std::optional<Experiment> experiment; // there if and only if there are no faults
    std::vector<Fault> faults;            // all of them, by place
};

// Overrides as apply_overrides takes them ("phases.measure=4s"): scalars that are there, and, whether there or not,
// replicates, order, seed and all of phases. Pure; never throws.
ParseOutcome parse_experiment(std::string_view text, const std::vector<std::string>& overrides = {});

} // namespace perfrig
