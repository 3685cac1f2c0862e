// Follows a submission to its end: on a terminal a bar for the phase of the run that is under way, elsewhere a line for
// each run that ends. SIGINT and SIGTERM (Jenkins' abort) cancel the submission and wait, bounded, until nothing runs.
#pragma once

#include "controller/cli/client.hpp"

#include <cstdint>

namespace perfrig::cli {

struct FollowOptions {
    bool terminal = false; // bars and colours
    bool quiet = false;
};

// Before follow(): from here on the two signals are remembered instead of ending the program.
void remember_stop_signals();

// The submission's last document: its state is an end state, or `cancelled` after a signal.
Result<Json> follow(const Client& client, std::int64_t submission, const FollowOptions& options);

} // namespace perfrig::cli
