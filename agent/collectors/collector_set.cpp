#include "agent/collectors/collector_set.hpp"

#include "agent/collectors/system.hpp"
#include "common/process/thread_counts_channel.hpp"

#include <optional>

namespace perfrig {

struct CollectorSet::State {
    State(FileTree tree, const Clock& c, UniqueFd counts_socket) : clock(c) {
        if (counts_socket) counts.emplace(std::move(counts_socket));
        all.push_back(std::make_unique<CpuCollector>(tree));
        all.push_back(std::make_unique<MemoryCollector>(tree));
        all.push_back(std::make_unique<FrequencyCollector>(tree));
        auto t = std::make_unique<ThreadCollector>(tree, 0, counts ? &*counts : nullptr);
        threads = t.get();
        all.push_back(std::move(t));
        all.push_back(
            std::make_unique<OverheadCollector>(counts ? &*counts : nullptr)); // last: it sees what the others cost
    }

    const Clock& clock;
    std::optional<ThreadCountsClient> counts;
    std::vector<std::unique_ptr<Collector>> all;
    ThreadCollector* threads = nullptr; // in `all`
    SampleSink sink;
    SnapshotBuilder live;
};

CollectorSet::CollectorSet(FileTree tree, const Clock& clock, UniqueFd counts)
    : state_(std::make_unique<State>(std::move(tree), clock, std::move(counts))) {}
CollectorSet::~CollectorSet() = default;

void CollectorSet::watch(WatchedProcess process) {
    const std::lock_guard lock(mutex_);
    state_->threads->watch(std::move(process));
}

void CollectorSet::unwatch(const std::string& process) {
    const std::lock_guard lock(mutex_);
    state_->threads->unwatch(process);
}

Tick CollectorSet::tick() {
    const std::lock_guard lock(mutex_);
    State& s = *state_;
    const std::int64_t start = s.clock.monotonic_ns();
    s.sink.begin(start);
    for (const auto& collector : s.all) collector->tick(start, s.sink);
    Tick tick = s.sink.take(s.clock.monotonic_ns() - start);
    s.live.add(tick);
    return tick;
}

AffinityNews CollectorSet::take_affinity_news() {
    const std::lock_guard lock(mutex_);
    return state_->threads->take_affinity_news();
}

ProcessSnapshot CollectorSet::snapshot() const {
    const std::lock_guard lock(mutex_);
    return state_->live.snapshot();
}

void CollectorSet::restart_series() {
    const std::lock_guard lock(mutex_);
    for (const auto& collector : state_->all) collector->forget_series();
    state_->sink = SampleSink();
    state_->live.forget_series();
}

} // namespace perfrig
