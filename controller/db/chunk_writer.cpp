#include "controller/db/chunk_writer.hpp"

#include <algorithm>
#include <limits>

namespace perfrig::db::samples {

Result<void> ChunkWriter::add(model::Id machine, const protocol::SampleFrame& frame) {
    for (const protocol::Sample& sample : frame.samples) {
        if (sample.series > std::uint32_t(std::numeric_limits<int>::max()))
            return fail(ErrorKind::bad_input, "seal a frame of run", std::to_string(run_),
                        "it names series " + std::to_string(sample.series));
        const Key key{machine, static_cast<int>(sample.series)};
        auto& points = held_[key];
        points.push_back({frame.time_ns, sample.value});
        ++points_;
        ++held_points_;
        if (points.size() == most_points_in_chunk) {
            held_points_ -= points.size();
            PERFRIG_CHECK(write(key, std::exchange(points, {})));
        }
    }
    if (held_points_ > most_points_held) return finish();
    return {};
}

Result<void> ChunkWriter::finish() {
    for (auto& [key, points] : held_)
        if (!points.empty()) PERFRIG_CHECK(write(key, std::exchange(points, {})));
    held_.clear();
    held_points_ = 0;
    return {};
}

Result<void> ChunkWriter::write(const Key& key, std::vector<model::Point> points) {
    std::ranges::stable_sort(points, {}, &model::Point::time_ns);
    for (std::size_t at = 0; at < points.size();) {
        std::size_t end = std::min(at + most_points_in_chunk, points.size());
        // The next chunk's start must differ from this one's: only a flood of points at one instant exceeds the size.
        while (end < points.size() && points[end].time_ns == points[at].time_ns) ++end;
        PERFRIG_CHECK(write_piece(key, std::span(points).subspan(at, end - at)));
        at = end;
    }
    return {};
}

Result<void> ChunkWriter::write_piece(const Key& key, std::span<const model::Point> points) {
    const std::int64_t start = points.front().time_ns;
    std::vector<std::int64_t> offsets;
    std::vector<double> values;
    offsets.reserve(points.size());
    values.reserve(points.size());
    for (const model::Point& point : points) {
        offsets.push_back(point.time_ns - start);
        values.push_back(point.value);
    }
    PERFRIG_TRY(
        const Rows made,
        connection_.exec("insert into series_chunk (run_id, machine_id, series_id, start_ns, offsets_ns, values) "
                         "values ($1, $2, $3, $4, $5, $6) on conflict do nothing",
                         {run_, key.first, key.second, start, Param::array(offsets), Param::array(values)}));
    if (made.affected() == 1) {
        ++chunks_;
        return {};
    }
    // Late points that begin at the very instant of a sealed chunk: both become one and are cut anew.
    PERFRIG_TRY(const Rows old, connection_.exec_binary(
                                    "delete from series_chunk where run_id = $1 and machine_id = $2 and series_id = $3 "
                                    "and start_ns = $4 returning offsets_ns, values",
                                    {run_, key.first, key.second, start}));
    const auto old_offsets = old.integers(0, 0);
    const auto old_values = old.reals(0, 1);
    std::vector<model::Point> merged;
    for (std::size_t i = 0; i < old_values.size(); ++i) merged.push_back({start + old_offsets.at(i), old_values[i]});
    merged.insert(merged.end(), points.begin(), points.end());
    return write(key, std::move(merged));
}

} // namespace perfrig::db::samples
