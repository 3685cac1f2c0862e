#include "common/metrics/coverage.hpp"

namespace perfrig {

Coverage cpu_coverage(std::span<const CounterSpan> threads, std::span<const CounterSpan> processes,
                      double resolution_seconds) {
    Coverage out;
    for (const CounterSpan& t : threads) out.sampled_cpu_seconds += t.last - t.first;
    for (const CounterSpan& p : processes) out.process_cpu_seconds += p.last - p.first;
    if (out.process_cpu_seconds >= resolution_seconds) out.ratio = out.sampled_cpu_seconds / out.process_cpu_seconds;
    return out;
}

} // namespace perfrig
