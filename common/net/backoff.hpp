// How long to wait before trying again: doubles from `least` to `most`, with jitter, so that many agents that lost
// the same controller do not come back in step ("equal jitter": half of the wait is fixed, half is random). Pure.
#pragma once

#include "common/base/clock.hpp"

#include <cstdint>

namespace perfrig {

class Backoff {
  public:
    // 0 < least <= most; a wrong order is put right.
    Backoff(Milliseconds least, Milliseconds most);

    // The next wait; `random` is any uniformly random 64-bit number. Within [least/2, most], never zero.
    Milliseconds next(std::uint64_t random);
    void reset() { ceiling_ = least_; } // after a success that held

  private:
    Milliseconds least_;
    Milliseconds most_;
    Milliseconds ceiling_; // of the next wait
};

} // namespace perfrig
