// One command from start to end, with what it printed: for tools that answer and go (initdb, pg_ctl, wrk -v).
// Bounded in time and in memory; at the deadline its whole process group is killed.
#pragma once

#include "common/base/clock.hpp"
#include "common/process/exit_status.hpp"
#include "common/process/spawn.hpp"

#include <string>

namespace perfrig {

struct CommandResult {
    ExitStatus exit;
    std::string out;
    std::string err;
    bool truncated = false; // it printed more than most_bytes on one of the two: the rest was read and dropped
};

struct CommandOptions {
    Environment environment = current_environment();
    std::string directory;
    std::optional<User> user;         // only root can become another
    std::size_t most_bytes = 1 << 20; // of each of out and err
    bool wait_for_output = true;      // false: stop reading when the command itself has ended, though a daemon that it
                                      // started (pg_ctl start) still holds its output
};

// Blocking. A command that runs and exits with a code, whatever it is, is a value; one that can't be started or is out
// of time (timed_out, with the end of what it printed) is an error.
Result<CommandResult> run_command(std::vector<std::string> argv, Deadline deadline, const CommandOptions& options = {});
// As one call without options.
Result<CommandResult> run_command(std::vector<std::string> argv, Environment environment, std::string directory,
                                  Deadline deadline, std::size_t most_bytes);

} // namespace perfrig
