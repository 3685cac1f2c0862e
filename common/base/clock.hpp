// Time. Durations and deadlines use the monotonic clock (nanoseconds since boot, CLOCK_MONOTONIC); UTC is derived
// through anchors and only for people. Code that decides takes a Clock, so that tests can hold time still.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace perfrig {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;

// One reading of both clocks as close together as they can be had; error_ns bounds how far apart they were read.
struct ClockAnchor {
    std::int64_t monotonic_ns = 0;
    std::int64_t utc_ns = 0; // since 1970-01-01T00:00:00Z
    std::int64_t error_ns = 0;
};

class Clock {
  public:
    virtual ~Clock() = default;
    virtual std::int64_t monotonic_ns() const = 0;
    virtual std::int64_t utc_ns() const = 0;
    ClockAnchor anchor() const; // the tightest of three tries
};

class SystemClock final : public Clock {
  public:
    std::int64_t monotonic_ns() const override;
    std::int64_t utc_ns() const override;
};

// "2026-11-30T20:23:47.123456Z", always UTC.
std::string to_rfc3339(std::int64_t utc_ns);

// A point on the monotonic clock by which something must have happened.
class Deadline {
  public:
    static Deadline in(Milliseconds time);
    static Deadline at(std::chrono::steady_clock::time_point when) { return Deadline(when); }
    bool passed() const { return std::chrono::steady_clock::now() >= when_; }
    Milliseconds left() const; // never negative
    std::chrono::steady_clock::time_point when() const { return when_; }
    Deadline earlier_of(Deadline other) const { return other.when_ < when_ ? other : *this; }

  private:
    explicit Deadline(std::chrono::steady_clock::time_point when) : when_(when) {}
    std::chrono::steady_clock::time_point when_;
};

} // namespace perfrig
