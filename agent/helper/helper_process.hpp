// The helper: the one process that keeps privileges. It does what the closed list of verbs says, watches the guardians,
// ends the runs of those that are lost, and ends with the agent.
#pragma once

#include "agent/helper/config.hpp"
#include "common/base/unique_fd.hpp"
#include "common/process/users.hpp"

namespace perfrig {

// In the forked child; `agent` is its end of the channel. The first packet says that it is ready, or why not.
// Returns its exit code.
int run_helper(const HelperConfig& config, const User& workload, UniqueFd agent);

} // namespace perfrig
