// What the helper is told once, at start; the agent can't change it afterwards, whatever happens to the agent.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"

#include <string>

namespace perfrig {

struct HelperConfig {
    // Identity of this agent on this machine: cgroups are named by its hash, sweep() ends what an earlier agent of the
    // same state directory left. Absolute.
    std::string state_directory;
    // Where runs get their directories; made by the helper, owned by it, and every folder above it must be passable
    // (x) for the workload's user. Absolute.
    std::string work_base;
    std::string agent_user;    // root only: what the agent becomes. Required then, never uid 0
    std::string workload_user; // root only: what workloads run as. Required then, never uid 0
    bool use_cgroups = true;   // false: as on a machine without them: affinity alone, runs are ended by process tree
    Milliseconds time_to_end{15'000}; // for what one run started, until it counts as left
    FileTree tree{"/"};               // where /proc, /etc and the cgroup mounts are
};

} // namespace perfrig
