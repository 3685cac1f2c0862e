#include "common/net/backoff.hpp"

#include <algorithm>

namespace perfrig {

Backoff::Backoff(Milliseconds least, Milliseconds most)
    : least_(std::max(Milliseconds(1), std::min(least, most))), most_(std::max({Milliseconds(1), least, most})),
      ceiling_(least_) {}

Milliseconds Backoff::next(std::uint64_t random) {
    const auto ceiling = static_cast<std::uint64_t>(ceiling_.count());
    const std::uint64_t fixed = ceiling / 2;
    const auto wait = static_cast<std::int64_t>(fixed + random % (ceiling - fixed + 1));
    // Halved before the comparison, so that a huge bound can't overflow.
    ceiling_ = ceiling_ > most_ / 2 ? most_ : ceiling_ * 2;
    return Milliseconds(std::max<std::int64_t>(wait, 1));
}

} // namespace perfrig
