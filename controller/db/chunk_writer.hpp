// Collects a run's points per series and writes them as chunks of at most 4,096 points, with a bound on what is held
// in memory however many series there are.
#pragma once

#include "controller/db/samples.hpp"

#include <map>
#include <vector>

namespace perfrig::db::samples {

class ChunkWriter {
  public:
    static constexpr std::size_t most_points_held = 4'000'000; // 64 MB

    ChunkWriter(Connection& c, model::Id run) : connection_(c), run_(run) {}
    Result<void> add(model::Id machine, const protocol::SampleFrame& frame);
    Result<void> finish(); // writes what is left
    std::int64_t points() const { return points_; }
    std::int64_t chunks() const { return chunks_; }

  private:
    using Key = std::pair<model::Id, int>; // machine, series
    Result<void> write(const Key& key, std::vector<model::Point> points);
    Result<void> write_piece(const Key& key, std::span<const model::Point> points);

    Connection& connection_;
    model::Id run_;
    std::map<Key, std::vector<model::Point>> held_;
    std::size_t held_points_ = 0;
    std::int64_t points_ = 0, chunks_ = 0;
};

} // namespace perfrig::db::samples
