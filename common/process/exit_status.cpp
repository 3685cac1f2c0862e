#include "common/process/exit_status.hpp"

#include <cstring>
#include <sys/wait.h>

namespace perfrig {

std::string ExitStatus::text() const {
    if (signal == 0) return code == 0 ? "0" : "exit " + std::to_string(code);
    const char* name = ::sigdescr_np(signal); // strsignal isn't safe in threaded programs
    return "signal " + std::to_string(signal) + " (" + (name ? name : "unknown") + ")";
}

ExitStatus ExitStatus::from_wait_status(int status) {
    if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
}

} // namespace perfrig
