// The privilege split. start_helper() forks: the child becomes the warden, which starts the helper; these keep what
// privileges there are, and the caller goes on as the agent and, where root started it, becomes the agent's user for
// good. Without root the same code runs, everything under one user.
#pragma once

#include "agent/helper/client.hpp"
#include "agent/helper/config.hpp"

namespace perfrig {

// Call in main before any thread exists (forbidden otherwise). Root without agent_user and workload_user is refused:
// workloads never run as root silently.
Result<HelperClient> start_helper(const HelperConfig& config);

// The fork alone, without changing the caller's user: what start_helper does first.
Result<HelperClient> fork_helper(const HelperConfig& config);

} // namespace perfrig
