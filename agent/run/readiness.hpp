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

// Text that every line matching the pattern contains, as far as that is plain to see; "" where it isn't. A flood of
// lines is then searched at memory speed, and the regular expression sees only lines that have it. Pure.
std::string literal_of(std::string_view pattern);

// Watches lines as they come, from the output pump's thread.
class LogReadiness {
  public:
    explicit LogReadiness(LinePattern pattern) : pattern_(std::move(pattern)), literal_(literal_of(pattern_.text())) {}
    void line(std::string_view text) {
        if (seen_.load(std::memory_order_relaxed) || text.find(literal_) == std::string_view::npos) return;
        if (pattern_.matches(text)) seen_ = true;
    }
    bool seen() const { return seen_; }

  private:
    LinePattern pattern_;
    std::string literal_;
    std::atomic<bool> seen_ = false;
};

} // namespace perfrig
