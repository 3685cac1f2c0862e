#include "agent/run/sampler.hpp"

#include "common/process/affinity.hpp"

#include <pthread.h>

namespace perfrig {

namespace {
constexpr std::chrono::seconds period{1};
} // namespace

Sampler::Sampler(CollectorSet& collectors, CpuList monitor_cpus)
    : collectors_(collectors), next_(std::chrono::steady_clock::now()) {
    thread_ = std::thread([this, cpus = std::move(monitor_cpus)] { work(cpus); });
}

Sampler::~Sampler() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Sampler::work(CpuList cpus) {
    ::pthread_setname_np(::pthread_self(), "perfrig-sampler");
    std::unique_lock lock(mutex_);
    pinned_ = pin_this_thread(cpus);
    while (!stop_) {
        if (changed_.wait_until(lock, next_, [this] { return stop_; })) break;
        if (std::chrono::steady_clock::now() < next_) continue; // a tick at an exact moment came between
        tick_unlocked();
    }
}

std::int64_t Sampler::tick_unlocked() {
    const auto now = std::chrono::steady_clock::now();
    const Tick tick = collectors_.tick();
    if (recorder_) recorder_->tick(tick);
    // Keep the second's grid; after a pause of the whole machine begin a new one instead of running behind.
    next_ = next_ + period > now && next_ <= now ? next_ + period : now + period;
    return tick.at_ns;
}

std::int64_t Sampler::tick_now() {
    const std::lock_guard lock(mutex_);
    next_ = std::chrono::steady_clock::now();
    const std::int64_t at = tick_unlocked();
    changed_.notify_all();
    return at;
}

void Sampler::attach(RunRecorder& recorder) {
    const std::lock_guard lock(mutex_);
    collectors_.restart_series();
    recorder_ = &recorder;
}

void Sampler::detach() {
    const std::lock_guard lock(mutex_);
    recorder_ = nullptr;
}

bool Sampler::pinned() const {
    const std::lock_guard lock(mutex_);
    return pinned_;
}

} // namespace perfrig
