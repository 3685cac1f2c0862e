// Why nothing of a submission runs, in words for the person who asks. Pure.
#pragma once

#include "common/base/clock.hpp"
#include "controller/model/waiting.hpp"

#include <optional>
#include <string>
#include <vector>

namespace perfrig::queue {

// Agents send a heartbeat every two seconds or oftener.
constexpr Milliseconds silent_after{15'000};

struct WaitingFor {
    std::string machine;
    std::string why;  // held, draining, quarantined, restoring, silent, never_joined, busy, free
    std::string text; // "held by user 1a2b3c4d: firmware"
};

struct Waiting {
    std::string text; // one line
    std::int64_t blocks_ahead = 0;
    std::vector<WaitingFor> machines; // those that suit; where its block is in hand already, the silent one that has it
};

// None: something of it is under way, or it has nothing left to start.
std::optional<Waiting> why_waiting(const model::WaitingView& view, std::int64_t now_utc_ns);

} // namespace perfrig::queue
