// What a collector is, and what one tick of all of them gives.
//
// A collector reads something of the kernel's once a second and hands raw values to a sink: counters as the kernel
// counts them (in seconds, bytes or events since the thing began), gauges as they are. Rates are derived later, over a
// stated window. A series is registered once, gets a small id, and from then on a value costs an id and a double.
// What can't be understood is reported as an error of the tick; what vanishes between listing and reading (processes
// do) is no error.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perfrig {

enum class SeriesKind { counter, gauge };

struct SeriesInfo {
    int id = 0;       // from 1 on; unique until CollectorSet::restart_series()
    std::string name; // unit included: "thread_cpu_seconds"
    std::string unit; // "seconds", "bytes", "hertz", "switches", "events"
    SeriesKind kind = SeriesKind::gauge;
    std::map<std::string, std::string> labels;
};

struct Tick {
    std::int64_t at_ns = 0;                     // CLOCK_MONOTONIC at which reading began
    std::int64_t took_ns = 0;                   // until reading ended
    std::vector<SeriesInfo> new_series;         // those first seen in this tick, by rising id
    std::vector<std::pair<int, double>> values; // (series id, value); every live series once
    std::vector<int> ended_series;              // no values of theirs after this tick
    std::vector<std::string> collector_errors;  // content that wasn't understood, files that couldn't be read
    std::vector<std::string> findings;          // what the reader of the run must know ("no schedstat: ...")
};

// Gathers one tick at a time. Errors and findings are bounded (32 a tick, then counted); findings come once.
class SampleSink {
  public:
    static constexpr std::size_t most_errors = 32;

    int series(std::string name, std::string unit, SeriesKind kind, std::map<std::string, std::string> labels);
    void add(int id, double value) { tick_.values.emplace_back(id, value); }
    void end(int id) { tick_.ended_series.push_back(id); }
    void error(std::string text);
    void finding(const std::string& text); // said once per sink, however often it is called

    void begin(std::int64_t now_ns) { tick_.at_ns = now_ns; }
    Tick take(std::int64_t took_ns); // the tick so far; the next one begins empty

  private:
    Tick tick_;
    int next_id_ = 1;
    std::size_t dropped_errors_ = 0;
    std::set<std::string> said_;
};

class Collector {
  public:
    virtual ~Collector() = default;
    virtual std::string_view name() const = 0;
    // Reads everything once. Never blocks on anything but the kernel's own files; never fails as a whole.
    virtual void tick(std::int64_t now_ns, SampleSink& sink) = 0;
    // The ids so far are void: register every series anew at the next tick.
    virtual void forget_series() = 0;
};

} // namespace perfrig
