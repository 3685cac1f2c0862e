// Drains what the run's processes print, on a thread of its own, so that no process ever waits for the agent: into
// bounded logs, secrets redacted, line by line to whoever listens (readiness, live figures), the last lines kept for
// the reason of a failure.
#pragma once

#include "agent/run/bounded_log.hpp"
#include "common/base/cpu_list.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace perfrig {

// One of the two outputs of one process. Written by the pump's thread, read by any.
class ProcessOutput {
  public:
    using LineListener = std::function<void(std::string_view line)>; // called on the pump's thread; must be quick
    ProcessOutput(BoundedLog log, std::vector<std::string> secrets, LineListener listener);
    ~ProcessOutput();

    std::vector<std::string> last_lines() const; // at most 20, without their ends
    std::uint64_t dropped_bytes() const;
    std::uint64_t total_bytes() const;
    const std::string& path() const; // of the log; whole after finish()
    bool ended() const;              // the pipe was closed by all who held it
    Result<void> finish();           // idempotent

    void add(std::string_view chunk); // for the pump
    void end();                       // for the pump

  private:
    struct State;
    mutable std::mutex mutex_;
    std::unique_ptr<State> state_;
};

class OutputPump {
  public:
    // `cpus`: where the thread stays (the monitor's); empty: anywhere.
    explicit OutputPump(CpuList cpus);
    ~OutputPump(); // drains what is in the pipes now, then closes them
    OutputPump(const OutputPump&) = delete;
    OutputPump& operator=(const OutputPump&) = delete;

    // Reads `pipe` (the reading end) until its end.
    void watch(UniqueFd pipe, std::shared_ptr<ProcessOutput> output);

  private:
    struct State;
    void work();
    void wake();
    std::unique_ptr<State> state_;
    std::thread thread_;
};

} // namespace perfrig
