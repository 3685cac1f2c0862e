// A folder that goes away, and short names for what spool tests do.
#pragma once

#include "agent/session/spool.hpp"
#include "common/base/hash.hpp"
#include "common/protocol/run_event.hpp"
#include "common/protocol/sample_frame.hpp"
#include "common/protocol/spool_record.hpp"

#include "tests/support/doctest.hpp"

#include <filesystem>

namespace perfrig::testing {

class TempFolder {
  public:
    TempFolder() : path_(std::filesystem::temp_directory_path() / ("perfrig-test-" + random_hex(8))) {
        std::filesystem::create_directories(path_);
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    std::string path(const std::string& name = "") const {
        return name.empty() ? path_.string() : (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

inline std::string event_text(std::int64_t run, const std::string& message) {
    return protocol::encode(protocol::RunEvent{run, 1, 1, protocol::Found{"test", "info", "s", message}});
}
inline std::string samples_text(std::int64_t run) { return protocol::encode_samples({run, 1, {{1, 2.0}, {2, 3.0}}}); }

// Everything behind `after`, record by record, in chunks of at most `most_bytes`.
inline std::vector<std::pair<std::int64_t, protocol::SpoolRecord>> read_all(Spool& spool, SpoolPosition after = {},
                                                                            std::size_t most_bytes = 1 << 20) {
    std::vector<std::pair<std::int64_t, protocol::SpoolRecord>> out;
    while (true) {
        const auto chunk = spool.read_after(after, most_bytes);
        REQUIRE(chunk);
        if (!*chunk) return out;
        const auto batch = protocol::decode_batch(protocol::encode_batch_header((*chunk)->epoch) + (*chunk)->records);
        REQUIRE(batch); // what is read can be sent as it is
        CHECK(batch->records.front().seq == (*chunk)->first_seq);
        CHECK(batch->records.back().seq == (*chunk)->last_seq);
        for (const auto& record : batch->records) out.emplace_back(batch->epoch, record);
        after = {(*chunk)->epoch, (*chunk)->last_seq};
    }
}

} // namespace perfrig::testing
