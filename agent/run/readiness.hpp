// Whether a service answers. One look at a time, bounded; the run repeats it until it is ready or its time is over.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/line_pattern.hpp"
#include "common/base/result.hpp"

#include <atomic>
#include <string>
#include <string_view>

namespace perfrig {

// Connects to "host:port" (an address, or localhost). Errors: not yet (unavailable, timed_out), never (bad_input).
Result<void> check_tcp(const std::string& target, Deadline deadline);
// GET; ready at any status from 200 to 399.
Result<void> check_http(const std::string& url, Deadline deadline);

// Watches lines as they come, from the output pump's thread. The pattern itself makes a flood of them cheap.
class LogReadiness {
  public:
    explicit LogReadiness(LinePattern pattern) : pattern_(std::move(pattern)) {}
    void line(std::string_view text) {
        if (!seen_.load(std::memory_order_relaxed) && pattern_.matches(text)) seen_ = true;
    }
    bool seen() const { return seen_; }

  private:
    LinePattern pattern_;
    std::atomic<bool> seen_ = false;
};

} // namespace perfrig
