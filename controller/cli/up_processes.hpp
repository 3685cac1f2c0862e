// Which processes `perfrig up` left running: pid and start time (a pid alone may be somebody else's by now).
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <sys/types.h>

namespace perfrig::cli {

struct UpProcess {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0; // field 22 of /proc/PID/stat: clock ticks after boot
};

// Nothing where there is no such process (zombies count as gone).
Result<UpProcess> identify(pid_t pid);
bool alive(const UpProcess& process);
// SIGTERM, up to `grace` for it to end, SIGKILL, up to 5 s more. An error where it still lives then.
Result<void> end_process(const UpProcess& process, Milliseconds grace);

// One up or down at a time in a folder: two would make the same cluster, or end what the other starts. Held as long as
// the descriptor is open. Waits two minutes.
Result<UniqueFd> lock_folder(const std::string& folder);

Result<std::map<std::string, UpProcess>> read_up_file(const std::string& path); // empty where there is no file
Result<void> write_up_file(const std::string& path, const std::map<std::string, UpProcess>& processes);

} // namespace perfrig::cli
