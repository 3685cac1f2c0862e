// From an experiment to its runs, without looking at any machine: cells, replicates, order, blocks, expected time.
// And from one run of that plan and a machine's profile to the resolved run that the agent gets. Pure.
#pragma once

#include "common/base/result.hpp"
#include "common/experiment/experiment.hpp"
#include "common/experiment/resolved.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

struct Cell {
    std::uint32_t ordinal = 0;                 // from 0: the last factor changes fastest
    std::map<std::string, std::string> levels; // factor -> level
    std::string key;                           // SHA-256 of the canonical JSON of levels: the same in every submission
};

struct PlannedRun {
    std::uint32_t cell = 0;      // index into Plan::cells
    std::uint32_t replicate = 1; // from 1
    std::uint32_t block = 0;     // index into Plan::blocks
    std::uint32_t position = 0;  // from 0: its place in the order, over all blocks
};

// Runs that want the same boot state: positions first_run .. first_run + run_count - 1.
struct PlannedBlock {
    std::uint32_t ordinal = 0;
    std::map<std::string, std::optional<std::string>> kernel_args;
    std::uint32_t first_run = 0;
    std::uint32_t run_count = 0;
};

struct Plan {
    std::vector<Cell> cells;
    std::vector<PlannedRun> runs; // in the order in which they are to be made
    std::vector<PlannedBlock> blocks;
    std::uint64_t seed = 0;               // of the random order; 0 for the other orders
    double expected_seconds = 0;          // warm-up + pause + measure of every run, and overhead_seconds for each
    double overhead_seconds = 1;          // start, readiness, stop and upload of one run: 0.3 to 1.5 s were seen
    bool expected_is_lower_bound = false; // some run has no fixed measure (its tools end by themselves) or builds
    bool needs_confirmation = false;      // at least Limits::confirm_cells cells
};

struct Limits {
    std::uint64_t most_cells = 1'000'000;
    std::uint64_t most_runs = 1'000'000;
    std::uint64_t confirm_cells = 10'000; // from here on the asker must confirm (`--yes`, "confirm": true)
};

// Refuses (bad_input) more than most_cells cells or most_runs runs before anything is expanded.
Result<Plan> expand(const Experiment& experiment, const Limits& limits = {});

std::string cell_key(const std::map<std::string, std::string>& levels);

// What resolve needs of a machine's profile.
struct RoleGrants {
    std::map<std::string, std::string> roles;    // role -> cpulist
    std::vector<std::vector<std::string>> share; // roles that may share CPUs
};

// The run that the agent gets. Its roles are those that the cell uses, and `monitor` if the profile has it; a role that
// the profile lacks, or whose CPUs do not suffice for a role made from it, is an Error that names both and the remedy.
Result<ResolvedRun> resolve(const Experiment& experiment, const Cell& cell, int replicate, const RoleGrants& grants);

// The roles of the profile that some cell needs, sorted: what a machine must have to be able to run it.
std::vector<std::string> roles_needed(const Experiment& experiment);

} // namespace perfrig
