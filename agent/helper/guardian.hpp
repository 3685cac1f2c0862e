// The guardian of one run: starts its processes, reports their ends, and ends the run when it is told to or when the
// agent's end of the socket closes, whatever closed it. One process, one thread, one poll loop.
#pragma once

#include "agent/helper/ending.hpp"
#include "common/base/unique_fd.hpp"

#include <optional>

namespace perfrig {

struct GuardianSetup {
    RunName run;
    std::string directory;    // of the run, absolute
    std::optional<User> user; // what workloads become; none where the guardian has no privileges itself
    RunPlace place;
    std::int64_t most_processes = 0; // of the run; 0: no limit
    pid_t helper = -1;               // whose child it was born as
    UniqueFd agent;                  // its end of the channel
};

// In the forked child. Returns its exit code: 0 when nothing of the run is left.
int run_guardian(GuardianSetup setup);

} // namespace perfrig
