#include "common/protocol/sample_frame.hpp"

#include "common/protocol/bytes.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace perfrig::protocol {

namespace {
constexpr std::uint8_t format_version = 1;
constexpr std::size_t header_bytes = 1 + 8 + 8 + 4;
constexpr std::size_t sample_bytes = 4 + 8;

Error bad(std::string why) { return fail(ErrorKind::bad_input, "read", "a frame of samples", std::move(why)); }
} // namespace

std::string encode_samples(const SampleFrame& frame) {
    std::string out;
    out.reserve(header_bytes + sample_bytes * frame.samples.size());
    std::uint32_t count = 0;
    for (const Sample& sample : frame.samples)
        if (std::isfinite(sample.value)) ++count; // nothing that isn't a number travels
    put<std::uint8_t>(out, format_version);
    put(out, static_cast<std::uint64_t>(frame.run));
    put(out, static_cast<std::uint64_t>(frame.time_ns));
    put(out, count);
    for (const Sample& sample : frame.samples) {
        if (!std::isfinite(sample.value)) continue;
        put(out, sample.series);
        put(out, std::bit_cast<std::uint64_t>(sample.value));
    }
    return out;
}

Result<SampleFrame> decode_samples(std::string_view bytes) {
    if (bytes.size() < header_bytes) return bad("it is shorter than its header");
    if (const auto version = take<std::uint8_t>(bytes); version != format_version)
        return bad("version " + std::to_string(version) + " is unknown here");
    SampleFrame frame;
    frame.run = static_cast<std::int64_t>(take<std::uint64_t>(bytes));
    frame.time_ns = static_cast<std::int64_t>(take<std::uint64_t>(bytes));
    const std::size_t count = take<std::uint32_t>(bytes);
    if (frame.run < 1 || frame.time_ns < 0) return bad("run or time_ns is out of bounds");
    if (bytes.size() != count * sample_bytes)
        return bad("it says " + std::to_string(count) + " samples, its length says otherwise");
    frame.samples.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        Sample sample;
        sample.series = take<std::uint32_t>(bytes);
        sample.value = std::bit_cast<double>(take<std::uint64_t>(bytes));
        if (sample.series > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()))
            return bad("series " + std::to_string(sample.series) + " is out of bounds");
        if (!std::isfinite(sample.value))
            return bad("series " + std::to_string(sample.series) + " has no finite value");
        frame.samples.push_back(sample);
    }
    return frame;
}

} // namespace perfrig::protocol
