// Quantities with units, as people write them: "30s", "1500ms", "2m", "512MiB", "10k". A number without a unit is
// refused where a unit is needed.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace perfrig {

// ns, us, ms, s, m, h; decimals allowed ("1.5s"), parts too ("1m30s"); not negative; at most 366 days. "0" alone is
// zero.
Result<Nanoseconds> parse_duration(std::string_view text);
// B, KiB, MiB, GiB, TiB (1024) and kB, MB, GB, TB (1000).
Result<std::uint64_t> parse_size(std::string_view text);

std::string format_duration(Nanoseconds time); // "30s", "1m30s", "250ms"

} // namespace perfrig
