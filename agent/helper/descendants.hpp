// Ending processes by descent: the way that needs no cgroup. It works because the caller is a subreaper
// (PR_SET_CHILD_SUBREAPER): whatever its descendants do, double fork and setsid included, they stay its descendants.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace perfrig {

struct ProcessStat { // from /proc/PID/stat
    pid_t pid = -1;
    char state = '?';
    pid_t parent = -1;
    pid_t session = -1;
    std::int64_t terminal = 0;     // device number of the controlling terminal; 0: none
    std::uint64_t start_ticks = 0; // since boot; with pid: which process it is, though pids are reused
};
std::optional<ProcessStat> parse_process_stat(std::string_view text);
std::optional<ProcessStat> read_process_stat(const FileTree& tree, pid_t pid);
std::vector<ProcessStat> all_processes(const FileTree& tree);
// Pure: descendants of `root`, without the subtrees of `spared`.
std::vector<ProcessStat> descendants_of(const std::vector<ProcessStat>& all, pid_t root,
                                        const std::vector<pid_t>& spared);

// To exactly this process: through a pidfd whose process is looked at again, where the kernel has them; else after a
// second look at its start time.
bool signal_exactly(const FileTree& tree, const ProcessStat& process, int signal);

// Kills what `find` finds (the living alone matter), again and again until it finds nothing: stopped first, so that
// nothing forks away meanwhile. `reap` reaps what has ended. Returns how many were killed; timed_out when some are
// left.
Result<std::int64_t> kill_all(const FileTree& tree, const std::function<std::vector<ProcessStat>()>& find,
                              Deadline deadline, const std::function<void()>& reap);
// All descendants of the calling process but `spared` and theirs.
Result<std::int64_t> kill_descendants(const FileTree& tree, const std::vector<pid_t>& spared, Deadline deadline,
                                      const std::function<void()>& reap);

} // namespace perfrig
