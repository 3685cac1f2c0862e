// Writes what happens to one run into the sink: redacted, in order, synced at state changes. The first failure to write
// is kept and interrupts the run (the disk is full): a run whose evidence can't be kept must not go on.
// Thread-safe: the run's thread, the sampler and the output pump all write.
#pragma once

#include "agent/collectors/collector.hpp"
#include "agent/run/event_sink.hpp"
#include "agent/run/interrupt.hpp"
#include "common/base/clock.hpp"
#include "common/protocol/run_event.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

class RunRecorder {
  public:
    RunRecorder(EventSink& sink, const Clock& clock, std::int64_t block, std::int64_t run,
                std::vector<std::string> secrets, Interrupt& interrupt);

    void event(protocol::RunEventBody body);
    void state(std::string state, std::string reason, Milliseconds deadline); // and syncs
    void finding(std::string check, std::string severity, std::string subject, std::string message,
                 Json evidence = Json::object());
    void tick(const Tick& tick); // declares its new series, stores its values
    // One figure that came by itself (a tool's progress line). Its series is declared when it is first seen.
    void live(const std::string& name, const std::string& unit, std::map<std::string, std::string> labels,
              double value);
    void sync();

    // The run's end: as state(), but says whether it is written, so that the caller can try again.
    Result<void> end(std::string state, std::string reason);

    std::int64_t run() const { return run_; }
    std::int64_t now_ns() const { return clock_.monotonic_ns(); }
    std::string redacted(std::string text) const;
    std::uint64_t refused_frames() const; // samples that the full spool refused
    std::uint64_t live_left_out() const;  // values of live series beyond what is kept of a second

  private:
    Result<void> write(const protocol::RunEventBody& body);
    void write_samples(std::int64_t time_ns, const std::vector<std::pair<int, double>>& values);
    void note(const Result<void>& outcome);
    EventSink& sink_;
    const Clock& clock_;
    const std::int64_t block_, run_;
    const std::vector<std::string> secrets_;
    Interrupt& interrupt_;
    mutable std::mutex mutex_;
    struct LiveSeries {
        std::uint32_t id = 0;
        std::int64_t second = 0;
        int values = 0; // in that second
    };
    std::map<std::string, LiveSeries> live_series_;
    std::uint64_t refused_frames_ = 0, live_left_out_ = 0;
    std::size_t collector_errors_ = 0;
};

} // namespace perfrig
