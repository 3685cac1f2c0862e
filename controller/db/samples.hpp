// Samples. While a run lives they are frames (many series, one instant); sealing turns them into chunks of arrays per
// series when it ends.
#pragma once

#include "common/protocol/messages.hpp"
#include "common/protocol/sample_frame.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace perfrig::db::samples {

// --- ingest ---
// Locks the cursor of (machine, epoch, stream) until the transaction ends, and makes it (0) where there is none.
Result<std::uint64_t> lock_cursor(Connection& c, model::Id machine, std::int64_t epoch, int stream);
Result<void> advance_cursor(Connection& c, model::Id machine, std::int64_t epoch, int stream, std::uint64_t last_seq);
Result<std::vector<protocol::Cursor>> cursors(Connection& c, model::Id machine);

struct FrameRow {
    model::Id run = 0;
    std::uint64_t seq = 0;
    std::string bytes; // as encode_samples made them
};
Result<void> store_frames(Connection& c, model::Id machine, std::int64_t epoch, std::span<const FrameRow> frames);

// --- reading ---
struct LiveFrame {
    model::Id machine = 0;
    std::int64_t epoch = 0;
    std::uint64_t seq = 0;
    protocol::SampleFrame frame;
};
// The newest `limit` frames of a living run, oldest of them first; after (epoch, seq) where given.
Result<std::vector<LiveFrame>> live_tail(Connection& c, model::Id run, int limit, std::int64_t after_epoch = 0,
                                         std::uint64_t after_seq = 0);
// A sealed run's points, a chunk at a time and some chunks in memory, however many there are.
struct Which {
    std::string_view name = {}; // series of that name; empty: all
    model::Id machine = 0;      // with `series`: that one alone
    int series = 0;
    std::int64_t after_ns = INT64_MIN; // chunks that end later
};
struct Chunk {
    model::Id machine = 0;
    int series = 0;
    std::int64_t start_ns = 0;
    std::vector<model::Point> points; // by rising time
};
// Chunks come by machine, series and start; where frames came late, two of a series may overlap. `take` says whether it
// wants more.
Result<void> each_chunk(Connection& c, model::Id run, const Which& which,
                        const std::function<bool(const Chunk&)>& take);

// The points of one series with times behind `after_ns`, by rising time: the first `limit` of them and, so that none of
// one instant is lost between pages, any others of the last one's instant.
struct PageOfPoints {
    std::vector<model::Point> points;
    bool more = false;
};
Result<PageOfPoints> read_points(Connection& c, model::Id run, model::Id machine, int series, std::int64_t after_ns,
                                 std::size_t limit);

// --- sealing ---
constexpr std::size_t most_points_in_chunk = 4'096;
struct Sealed {
    std::int64_t frames = 0, points = 0, chunks = 0; // done now; all 0 where there was nothing to do
};
// One transaction: frames become chunks and are deleted, sealed_at is set. Again: frames that came late are merged in.
// A frame that can't be decoded stays out and becomes a finding. conflict: the run has not ended.
Result<Sealed> seal(Connection& c, model::Id run);

} // namespace perfrig::db::samples
