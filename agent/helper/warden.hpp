// The warden: the helper's parent, which does nothing but wait for the helper's end. A helper that is killed leaves
// runs that nobody with rights watches, and a guardian that is killed with it orphans what its run started: all of
// these are descendants of the warden (a subreaper), which ends them at once, and removes the cgroups.
//
// Who is killed (SIGKILL), and what ends the runs then:
//   a guardian                    the helper
//   the helper                    the warden: every run, living guardians included; the agent must stop in any case
//   helper and guardians          the warden
//   the warden                    the helper sees it and ends; its guardians end their runs once the agent stops, too
//   the agent                     each guardian its own run
//   agent, helper, guardians      the warden
//   all of these with the warden  each process that a guardian started dies with it (PR_SET_PDEATHSIG); what those
//                                 forked stays until recovery: the sweep that the next start of the agent begins with
#pragma once

#include "agent/helper/config.hpp"
#include "common/base/unique_fd.hpp"
#include "common/process/users.hpp"

namespace perfrig {

// In the forked child; `agent` is its end of the helper's channel. Prepares folders and cgroups, starts the helper and
// watches it. Returns its exit code: 0 where nothing is left of any run.
int run_warden(const HelperConfig& config, const User& workload, UniqueFd agent);

} // namespace perfrig
