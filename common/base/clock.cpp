#include "common/base/clock.hpp"

#include <cstdio>
#include <ctime>

namespace perfrig {

namespace {
std::int64_t read_clock(clockid_t id) {
    timespec t{};
    clock_gettime(id, &t);
    return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}
} // namespace

std::int64_t SystemClock::monotonic_ns() const { return read_clock(CLOCK_MONOTONIC); }
std::int64_t SystemClock::utc_ns() const { return read_clock(CLOCK_REALTIME); }

ClockAnchor Clock::anchor() const {
    ClockAnchor best{0, 0, INT64_MAX};
    for (int i = 0; i < 3; ++i) {
        const std::int64_t before = monotonic_ns();
        const std::int64_t utc = utc_ns();
        const std::int64_t width = monotonic_ns() - before;
        if (width < best.error_ns) best = {before + width / 2, utc, width};
    }
    return best;
}

std::string to_rfc3339(std::int64_t utc_ns) {
    std::int64_t seconds = utc_ns / 1'000'000'000;
    std::int64_t rest = utc_ns % 1'000'000'000;
    if (rest < 0) --seconds, rest += 1'000'000'000;
    const std::time_t t = seconds;
    std::tm parts{};
    gmtime_r(&t, &parts);
    char text[64];
    std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(rest / 1000));
    return text;
}

Deadline Deadline::in(Milliseconds time) { return Deadline(std::chrono::steady_clock::now() + time); }

Milliseconds Deadline::left() const {
    const auto rest = std::chrono::ceil<Milliseconds>(when_ - std::chrono::steady_clock::now());
    return rest.count() < 0 ? Milliseconds(0) : rest;
}

} // namespace perfrig
