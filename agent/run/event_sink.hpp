// Where a run's events and samples go: the spool, seen from the run. What a call returned for is on its way for good:
// it survives SIGKILL at once, a power cut after the next sync().
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <string_view>

namespace perfrig {

class EventSink {
  public:
    enum class Stored {
        yes,
        refused_full, // samples only: the spool's share for samples is used up
    };
    virtual ~EventSink() = default;
    // `payload` as common/protocol encodes it. Errors: unavailable (the disk is full or broken), bad_input (too long).
    virtual Result<void> append_event(std::string_view payload) = 0;
    virtual Result<Stored> append_samples(std::string_view payload) = 0;
    virtual Result<void> sync() = 0;
    virtual std::uint64_t last_sequence() const = 0; // 0: nothing yet in this epoch
};

} // namespace perfrig
