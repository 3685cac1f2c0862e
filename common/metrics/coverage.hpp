// What sampling missed. Threads that exit between two samples take their last CPU time with them; the process total
// keeps it. So the sum over sampled threads is held against the process total over the same window, and the ratio is
// stored beside the numbers that rest on threads.
#pragma once

#include <optional>
#include <span>

namespace perfrig {

// One counter over the window, in the counter's unit. Where the thing was born inside the window (its first sample
// lies after the window's start), `first` is 0, since it has counted from its birth.
struct CounterSpan {
    double first = 0;
    double last = 0;
};

struct Coverage {
    double sampled_cpu_seconds = 0; // sum over threads
    double process_cpu_seconds = 0; // sum over processes
    // sampled / process; none where the processes used less than `resolution_seconds`, since clock ticks (10 ms)
    // then decide the ratio. May exceed 1 by the same rounding.
    std::optional<double> ratio;
};

Coverage cpu_coverage(std::span<const CounterSpan> threads, std::span<const CounterSpan> processes,
                      double resolution_seconds = 0.1);

} // namespace perfrig
