// What the command line tells a script that calls it.
#pragma once

namespace perfrig::cli {

constexpr int exit_good = 0;
constexpr int exit_run_failed = 1;     // a run failed or was voided, or the submission was cancelled
constexpr int exit_bad_input = 2;      // the file, the arguments, the token
constexpr int exit_infrastructure = 3; // controller, agent or database: the same call may succeed later

} // namespace perfrig::cli
