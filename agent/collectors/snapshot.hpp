// The live picture for /metrics and the follower's progress line: rates over the last two ticks, by CPU and by thread
// group. Built from ticks alone, so a scrape reads no /proc however often it comes.
#pragma once

#include "agent/collectors/collector.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

struct CpuRates { // shares of the window, 0..1
    int cpu = 0;
    double user = 0, nice = 0, system = 0, irq = 0, softirq = 0, steal = 0, iowait = 0, idle = 0;
    std::optional<double> frequency_hertz;
};

struct ThreadGroupRates { // threads of one service with one job: comm without trailing digits
    std::string process, role, group;
    std::size_t threads = 0;
    double user_cpus = 0, system_cpus = 0;           // CPU seconds per second
    std::optional<double> run_queue_wait_per_second; // seconds per second, summed over the threads
    double voluntary_switches_per_second = 0, involuntary_switches_per_second = 0;
};

struct ServiceMemory {
    std::string process, role;
    double rss_bytes = 0; // summed over its processes
};

struct ProcessSnapshot {
    std::int64_t at_ns = 0;    // of the last tick; 0: none yet
    double window_seconds = 0; // between the last two; 0: no rates yet
    std::vector<CpuRates> cpus;
    std::vector<ThreadGroupRates> groups; // by process, then group
    std::vector<ServiceMemory> memory;
    std::optional<double> memory_available_bytes;
    double agent_cpus = 0;          // the agent's own CPU seconds per second
    double tick_seconds = 0;        // how long reading took in the last tick
    std::uint64_t errors_total = 0; // collector errors since the start
};

std::string thread_group_of(std::string_view comm); // "executor-thread-12" -> "executor-thread-"; all digits: as is

class SnapshotBuilder {
  public:
    SnapshotBuilder();
    ~SnapshotBuilder();
    void add(const Tick& tick);
    ProcessSnapshot snapshot() const;
    void forget_series();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace perfrig
