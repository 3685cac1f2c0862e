// One file of the spool: records one behind the other (common/protocol/spool_record.hpp), named by the sequence number
// of its first record. Reading one back tells what is torn (the last record was being written) from what is damaged.
#pragma once

#include "common/base/result.hpp"
#include "common/protocol/spool_record.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

// Bytes that can't be read, with what is known around them.
struct SpoolDamage {
    std::int64_t epoch = 0;
    std::uint64_t after_seq = 0;  // the last good record before; 0: none
    std::uint64_t before_seq = 0; // the next good record; 0: none
    std::uint64_t bytes = 0;
    std::int64_t run = 0; // of the records around; 0: unknown
};

struct SegmentScan {
    std::uint64_t first_seq = 0, last_seq = 0; // 0 and 0: no record
    std::uint64_t records = 0;
    std::uint64_t good_bytes = 0; // up to the end of the last good record
    bool torn = false;            // more bytes follow that are no whole record, and no good record behind them
    std::vector<SpoolDamage> damage;
};

// Pure. Where a record is damaged, looks for the next good one behind it byte by byte.
SegmentScan scan_segment(std::string_view bytes, std::int64_t epoch);

// Advances `bytes` to the next good record with a sequence number above `above`; false: there is none.
bool skip_to_good_record(std::string_view& bytes, std::uint64_t above);

std::int64_t run_of(const protocol::SpoolRecord& record); // 0: it can't be told

std::string segment_name(std::uint64_t first_seq);        // "0000000000000000001.seg": sorts as it counts
std::uint64_t seq_of_segment_name(std::string_view name); // 0: it is no segment

} // namespace perfrig
