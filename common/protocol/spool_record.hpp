// What an agent spools and later sends: one record a time, in one stream, so that everything keeps its order (a run's
// end comes behind its last sample). The same bytes lie in the spool's files and in the link's binary frames:
//
//   u32 length of the rest | u32 CRC-32C of the rest | u8 kind | u64 sequence | payload        (little endian)
//
// where "the rest" of the length is kind, sequence and payload, and the checksum covers the same bytes.
// A binary frame of the link is u8 version (1) | i64 epoch | records, one behind the other, at most 1 MiB together.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::protocol {

constexpr int main_stream = 0;
constexpr std::size_t most_record_bytes = 1 << 20; // of one encoded record, length and checksum included
constexpr std::size_t record_overhead_bytes = 4 + 4 + 1 + 8;
constexpr std::size_t most_batch_bytes = 1 << 20;

enum class RecordKind : std::uint8_t {
    run_event = 1, // JSON, common/protocol/run_event.hpp
    samples = 2,   // SampleFrame, common/protocol/sample_frame.hpp
};

struct SpoolRecord {
    RecordKind kind = RecordKind::run_event;
    std::uint64_t seq = 0; // 1, 2, 3 ... within one epoch
    std::string payload;
    friend bool operator==(const SpoolRecord&, const SpoolRecord&) = default;
};

std::string encode_record(const SpoolRecord& record);

// Reads one record from the front of `bytes` and advances past it. At the end of a torn file the error's kind is
// unavailable (too short); a wrong checksum, kind or length is bad_input.
Result<SpoolRecord> take_record(std::string_view& bytes);

// Sequences rise strictly within a batch; gaps are possible (a corrupt record is skipped and reported).
struct RecordBatch {
    std::int64_t epoch = 0;
    std::vector<SpoolRecord> records;
};
std::string encode_batch_header(std::int64_t epoch);
Result<RecordBatch> decode_batch(std::string_view frame);

} // namespace perfrig::protocol
