// What the link tells about itself, for /metrics and doctor. Written and read on the link's executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

struct LinkFigures {
    bool connected = false;
    std::uint64_t connections = 0; // how often a welcome came
    std::uint64_t batches_sent = 0, bytes_sent = 0;
    std::optional<std::int64_t> clock_offset_ns; // ours minus the controller's
    std::string last_error;
    std::vector<std::string> scrape_token_hashes;
};

} // namespace perfrig
