// What `perf bench` prints, as values: sched pipe in full, other suites as far as their lines have the same forms.
// Source: tools/perf/bench/*.c. Times in seconds.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace perfrig {

struct PerfBenchReport {
    struct Counter {                         // of a `perf stat` around it
        std::optional<double> value;         // nullopt: <not supported>, <not counted>
        std::optional<double> running_ratio; // share of the time that it was on the hardware; nullopt: all of it
    };
    std::string bench; // "sched/pipe"; empty in the simple format
    std::string kind;  // "processes" or "threads"
    std::optional<std::uint64_t> operations, groups, tasks, threads;
    std::optional<double> total_seconds, operation_seconds, operations_per_second, bytes_per_second, stdev_ratio;
    int reports = 0;          // "# Running" lines: `perf bench all` prints several, and the last of them stands here
    bool placeholder = false; // inf or nan stood where a number should
    std::map<std::string, Counter> counters;
};

// An Error when nothing in the text has a known form.
Result<PerfBenchReport> parse_perf_bench_report(std::string_view text);

} // namespace perfrig
