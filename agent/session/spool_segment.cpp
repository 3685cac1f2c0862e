#include "agent/session/spool_segment.hpp"

#include "common/protocol/run_event.hpp"
#include "common/protocol/sample_frame.hpp"

#include <charconv>

namespace perfrig {

namespace {
constexpr std::string_view extension = ".seg";
constexpr std::size_t digits = 19; // of 2^63 - 1
} // namespace

std::int64_t run_of(const protocol::SpoolRecord& record) {
    if (record.kind == protocol::RecordKind::samples) {
        const auto frame = protocol::decode_samples(record.payload);
        return frame ? frame->run : 0;
    }
    const auto event = protocol::decode_run_event(record.payload);
    return event ? event->run : 0;
}

bool skip_to_good_record(std::string_view& bytes, std::uint64_t above) {
    while (bytes.size() > protocol::record_overhead_bytes) {
        bytes.remove_prefix(1);
        std::string_view probe = bytes;
        const auto record = protocol::take_record(probe);
        if (record && record->seq > above) return true;
    }
    return false;
}

SegmentScan scan_segment(std::string_view bytes, std::int64_t epoch) {
    SegmentScan scan;
    std::string_view left = bytes;
    std::int64_t run = 0;
    while (!left.empty()) {
        const std::string_view before = left;
        const auto record = protocol::take_record(left);
        if (record && record->seq > scan.last_seq) {
            if (scan.records == 0) scan.first_seq = record->seq;
            scan.last_seq = record->seq;
            ++scan.records;
            scan.good_bytes = bytes.size() - left.size();
            if (!scan.damage.empty() && scan.damage.back().run == 0) scan.damage.back().run = run_of(*record);
            continue;
        }
        left = before;
        if (!skip_to_good_record(left, scan.last_seq)) {
            scan.torn = true;
            break;
        }
        // Only now is the run before the damage worth a look: scanning must stay cheap where all is well.
        std::string_view probe = left;
        const auto next = protocol::take_record(probe);
        run = next ? run_of(*next) : 0;
        scan.damage.push_back({epoch, scan.last_seq, next ? next->seq : 0, before.size() - left.size(), run});
    }
    return scan;
}

std::string segment_name(std::uint64_t first_seq) {
    const std::string number = std::to_string(first_seq);
    return std::string(number.size() < digits ? digits - number.size() : 0, '0') + number + std::string(extension);
}

std::uint64_t seq_of_segment_name(std::string_view name) {
    if (name.size() != digits + extension.size() || !name.ends_with(extension)) return 0;
    std::uint64_t seq = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + digits, seq);
    return error == std::errc() && end == name.data() + digits ? seq : 0;
}

} // namespace perfrig
