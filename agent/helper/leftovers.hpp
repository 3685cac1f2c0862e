// Processes of runs that nothing else finds any more: their guardian is gone, they have no cgroup, and they left the
// session and the parents that were noted. What every process of a run is born with gives them away:
//   PERFRIG_RUN in the environment that it was executed with names the run's directory (its descendants inherit it);
//   where it cleared that: its working folder lies in a run's directory. Only without a terminal, since a person's
//   shell may stand there too and, without root, belongs to the same user.
// A process that hides both, and runs as a user of its own, is not to be found by any means that needs no privileges.
#pragma once

#include "agent/helper/descendants.hpp"
#include "agent/helper/messages.hpp"

namespace perfrig {

constexpr std::string_view run_marker = "PERFRIG_RUN";

struct Leftover {
    ProcessStat process;
    RunName run;
};

// Of all runs that have, or had, their directory in `work_base`. Looks at processes of the user `uid` alone; those of
// `spared` and the caller with all above it are never among them.
std::vector<Leftover> find_leftovers(const FileTree& tree, const std::string& work_base, uid_t uid,
                                     const std::vector<pid_t>& spared);

} // namespace perfrig
