// The helper: the one process that keeps privileges. It does what the closed list of verbs says, watches the guardians,
// ends the runs of those that are lost, and ends with the agent.
#pragma once

#include "agent/helper/config.hpp"
#include "agent/helper/ending.hpp"
#include "common/base/unique_fd.hpp"
#include "common/process/users.hpp"

namespace perfrig {

struct HelperSetup {
    const HelperConfig& config;
    RunPlace place;
    const User& workload;
    UniqueFd warden; // end of file: its parent is gone
    UniqueFd agent;  // its end of the channel
};

// In the forked child. The first packet says that it is ready, and its pid. Returns its exit code: 0 where nothing is
// left of any run.
int run_helper(HelperSetup setup);

} // namespace perfrig
