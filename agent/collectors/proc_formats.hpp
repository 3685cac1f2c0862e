// The formats of /proc that collectors read, as pure functions: text in, values out, nothing guessed. Text that has
// another shape is an error that says which file's format it broke. Formats: proc(5),
// Documentation/filesystems/proc.rst and Documentation/scheduler/sched-stats.rst of Linux.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

// /proc/PID/stat and /proc/PID/task/TID/stat. Times in clock ticks (sysconf(_SC_CLK_TCK), 100 a second everywhere).
struct StatLine {
    std::int64_t pid = 0;
    std::string_view comm; // into the text; what stands between the first '(' and the last ')'
    char state = '?';
    std::int64_t parent = 0, process_group = 0;
    std::uint64_t user_ticks = 0, system_ticks = 0;                   // of this thread, or of the whole process
    std::uint64_t children_user_ticks = 0, children_system_ticks = 0; // waited-for children
    std::uint64_t start_ticks = 0;                                    // after boot
};
Result<StatLine> parse_stat(std::string_view text);

// /proc/PID/task/TID/schedstat: three numbers.
struct SchedStat {
    std::uint64_t cpu_ns = 0, run_queue_wait_ns = 0, timeslices = 0;
    friend bool operator==(const SchedStat&, const SchedStat&) = default;
};
Result<SchedStat> parse_schedstat(std::string_view text);

// What is wanted of /proc/PID/task/TID/status. The lists are views into the text ("0-3,8"); the name too: newlines and
// backslashes in it are escaped (unescaped_name takes that back).
struct StatusFields {
    std::string_view name;
    std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
    std::string_view cpus_allowed, mems_allowed; // mems empty on kernels without NUMA
};
Result<StatusFields> parse_status(std::string_view text);
std::string unescaped_name(std::string_view name);

// The per-CPU lines of /proc/stat, in clock ticks. Fields that old kernels lack are 0.
struct CpuTimes {
    int cpu = 0;
    std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
};
Result<std::vector<CpuTimes>> parse_proc_stat(std::string_view text);

// /proc/meminfo and node meminfo alike: name -> bytes (kB lines) or the bare number (HugePages_*).
Result<std::map<std::string_view, std::uint64_t>> parse_meminfo(std::string_view text);

// /proc/PID/statm: the second number, in pages.
Result<std::uint64_t> parse_statm_resident_pages(std::string_view text);

// One non-negative decimal number with an optional trailing newline: scaling_cur_freq, throttle counts.
Result<std::uint64_t> parse_single_number(std::string_view text);

// cgroup.procs: a pid a line.
Result<std::vector<std::int64_t>> parse_pid_lines(std::string_view text);
// The last pid that was given out, from /proc/loadavg: unchanged means that nothing was born.
Result<std::int64_t> parse_last_pid(std::string_view loadavg);

} // namespace perfrig
