// Ticks all collectors once a second on a thread of its own, pinned to the monitor's CPUs: always, for /metrics; and
// into a run's recorder while one is attached. A tick can be had at an exact moment, so that the samples' window is the
// phase's; the next one then follows a second later.
#pragma once

#include "agent/collectors/collector_set.hpp"
#include "agent/run/run_recorder.hpp"
#include "common/base/cpu_list.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace perfrig {

class Sampler {
  public:
    Sampler(CollectorSet& collectors, CpuList monitor_cpus);
    ~Sampler();
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    void attach(RunRecorder& recorder); // from the next tick on, with series of the run's own
    void detach();                      // returns when no tick uses the recorder any more
    std::int64_t tick_now();            // when it was, CLOCK_MONOTONIC nanoseconds
    bool pinned() const;

  private:
    void work(CpuList cpus);
    std::int64_t tick_unlocked();
    CollectorSet& collectors_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    RunRecorder* recorder_ = nullptr;
    std::chrono::steady_clock::time_point next_;
    bool stop_ = false, pinned_ = false;
    std::thread thread_;
};

} // namespace perfrig
