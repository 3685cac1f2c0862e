// What came in from agents since the start, for /metrics.
#pragma once

#include <array>
#include <cstdint>

namespace perfrig::agents {

struct IngestCounts {
    static constexpr std::array<double, 10> bucket_seconds{0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};

    std::int64_t batches = 0, bytes = 0, stored = 0, skipped = 0, rejected = 0, failed_batches = 0;
    std::int64_t heartbeats = 0, fenced_heartbeats = 0, sessions = 0;
    std::array<std::int64_t, 11> latency{}; // batches by time to commit; the last is beyond every bucket
    double latency_seconds = 0;             // the sum

    void add_latency(double seconds) {
        std::size_t at = 0;
        while (at < bucket_seconds.size() && seconds > bucket_seconds[at]) ++at;
        ++latency[at];
        latency_seconds += seconds;
    }
};

} // namespace perfrig::agents
