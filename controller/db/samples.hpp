// Samples. While a run lives they are frames (many series, one instant); sealing turns them into chunks of arrays per
// series when it ends.
#pragma once

#include "common/protocol/messages.hpp"
#include "common/protocol/sample_frame.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <span>
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
// Points of a sealed run's series; `name` limits to series of that name. At most most_points (conflict beyond).
constexpr std::size_t most_points = 20'000'000;
Result<std::vector<model::Series>> read_series(Connection& c, model::Id run, std::string_view name = {});

// --- sealing ---
constexpr std::size_t most_points_in_chunk = 4'096;
struct Sealed {
    std::int64_t frames = 0, points = 0, chunks = 0; // done now; all 0 where there was nothing to do
};
// One transaction: frames become chunks and are deleted, sealed_at is set. Again: frames that came late are merged in.
// A frame that can't be decoded stays out and becomes a finding. conflict: the run has not ended.
Result<Sealed> seal(Connection& c, model::Id run);

} // namespace perfrig::db::samples
