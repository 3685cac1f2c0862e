// One reading of many series at one instant, as it travels and as live_frame keeps it:
//
//   u8 version (1) | i64 run | i64 time_ns | u32 count | count x (u32 series id, f64 value)      (little endian)
//
// Series are declared by a run event before their first sample. Counters are stored raw.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::protocol {

struct Sample {
    std::uint32_t series = 0;
    double value = 0;
    friend bool operator==(const Sample&, const Sample&) = default;
};

struct SampleFrame {
    std::int64_t run = 0;
    std::int64_t time_ns = 0; // the agent's CLOCK_MONOTONIC
    std::vector<Sample> samples;
    friend bool operator==(const SampleFrame&, const SampleFrame&) = default;
};

std::string encode_samples(const SampleFrame& frame);
Result<SampleFrame> decode_samples(std::string_view bytes);

} // namespace perfrig::protocol
