#include "common/protocol/spool_record.hpp"

#include "common/base/hash.hpp"
#include "common/protocol/bytes.hpp"

namespace perfrig::protocol {

namespace {
constexpr std::size_t length_and_checksum = 4 + 4;
constexpr std::size_t kind_and_seq = 1 + 8;
constexpr std::uint8_t batch_version = 1;
constexpr std::size_t batch_header_bytes = 1 + 8;

Error bad(std::string what, std::string why) {
    return fail(ErrorKind::bad_input, "read", std::move(what), std::move(why));
}
} // namespace

std::string encode_record(const SpoolRecord& record) {
    std::string rest;
    rest.reserve(kind_and_seq + record.payload.size());
    put(rest, static_cast<std::uint8_t>(record.kind));
    put(rest, record.seq);
    rest += record.payload;
    std::string out;
    out.reserve(length_and_checksum + rest.size());
    put(out, static_cast<std::uint32_t>(rest.size()));
    put(out, crc32c(rest));
    return out += rest;
}

Result<SpoolRecord> take_record(std::string_view& bytes) {
    const auto torn = [] {
        return fail(ErrorKind::unavailable, "read", "a spool record", "it ends before its own length");
    };
    std::string_view left = bytes;
    if (left.size() < length_and_checksum) return torn();
    const std::size_t length = take<std::uint32_t>(left);
    const std::uint32_t checksum = take<std::uint32_t>(left);
    if (length < kind_and_seq || length + length_and_checksum > most_record_bytes)
        return bad("a spool record", "a length of " + std::to_string(length) + " bytes can't be");
    if (left.size() < length) return torn();
    std::string_view rest = left.substr(0, length);
    if (crc32c(rest) != checksum) return bad("a spool record", "its checksum is wrong");
    const auto kind = take<std::uint8_t>(rest);
    if (kind != static_cast<std::uint8_t>(RecordKind::run_event) &&
        kind != static_cast<std::uint8_t>(RecordKind::samples))
        return bad("a spool record", "kind " + std::to_string(kind) + " is unknown here");
    SpoolRecord record;
    record.kind = static_cast<RecordKind>(kind);
    record.seq = take<std::uint64_t>(rest);
    if (record.seq == 0 || record.seq > static_cast<std::uint64_t>(INT64_MAX))
        return bad("a spool record", "its sequence number is out of bounds");
    record.payload = std::string(rest);
    bytes = left.substr(length);
    return record;
}

std::string encode_batch_header(std::int64_t epoch) {
    std::string out;
    put(out, batch_version);
    put(out, static_cast<std::uint64_t>(epoch));
    return out;
}

Result<RecordBatch> decode_batch(std::string_view frame) {
    const std::string what = "a batch of spool records";
    if (frame.size() < batch_header_bytes) return bad(what, "it is shorter than its header");
    if (frame.size() > batch_header_bytes + most_batch_bytes) return bad(what, "it is longer than 1 MiB");
    if (const auto version = take<std::uint8_t>(frame); version != batch_version)
        return bad(what, "version " + std::to_string(version) + " is unknown here");
    RecordBatch batch;
    batch.epoch = static_cast<std::int64_t>(take<std::uint64_t>(frame));
    if (batch.epoch < 1) return bad(what, "its epoch is out of bounds");
    while (!frame.empty()) {
        auto record = take_record(frame);
        if (!record) // within a frame nothing can be torn: it came whole or not at all
            return bad(what, "record " + std::to_string(batch.records.size() + 1) + ": " + record.error().why);
        if (!batch.records.empty() && record->seq <= batch.records.back().seq)
            return bad(what, "sequence " + std::to_string(record->seq) + " does not rise");
        batch.records.push_back(std::move(*record));
    }
    if (batch.records.empty()) return bad(what, "it is empty");
    return batch;
}

} // namespace perfrig::protocol
