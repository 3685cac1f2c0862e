#include "controller/db/samples.hpp"

#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::db::samples {

Result<std::uint64_t> lock_cursor(Connection& c, model::Id machine, std::int64_t epoch, int stream) {
    PERFRIG_CHECK(c.exec("insert into ingest_cursor (machine_id, epoch, stream, last_seq) values ($1, $2, $3, 0) "
                         "on conflict do nothing",
                         {machine, epoch, stream}));
    PERFRIG_TRY(const Rows row, c.exec("select last_seq from ingest_cursor where machine_id = $1 and epoch = $2 "
                                       "and stream = $3 for update",
                                       {machine, epoch, stream}));
    return static_cast<std::uint64_t>(row.integer(0, 0));
}

Result<void> advance_cursor(Connection& c, model::Id machine, std::int64_t epoch, int stream, std::uint64_t last_seq) {
    PERFRIG_CHECK(c.exec("update ingest_cursor set last_seq = $4 where machine_id = $1 and epoch = $2 and stream = $3 "
                         "and last_seq < $4",
                         {machine, epoch, stream, static_cast<std::int64_t>(last_seq)}));
    return {};
}

Result<std::vector<protocol::Cursor>> cursors(Connection& c, model::Id machine) {
    PERFRIG_TRY(const Rows rows, c.exec("select epoch, stream, last_seq from ingest_cursor where machine_id = $1 "
                                        "order by epoch, stream",
                                        {machine}));
    std::vector<protocol::Cursor> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back(
            {rows.integer(i, 0), static_cast<int>(rows.integer(i, 1)), static_cast<std::uint64_t>(rows.integer(i, 2))});
    return out;
}

Result<void> store_frames(Connection& c, model::Id machine, std::int64_t epoch, std::span<const FrameRow> frames) {
    if (frames.empty()) return {};
    std::vector<std::int64_t> runs, seqs;
    std::vector<std::string> bytes;
    for (const FrameRow& frame : frames) {
        runs.push_back(frame.run);
        seqs.push_back(static_cast<std::int64_t>(frame.seq));
        bytes.push_back(frame.bytes);
    }
    PERFRIG_CHECK(
        c.exec("insert into live_frame (run_id, machine_id, epoch, seq, bytes) select run, $1, $2, seq, bytes "
               "from unnest($3::bigint[], $4::bigint[], $5::bytea[]) as given(run, seq, bytes)",
               {machine, epoch, Param::array(runs), Param::array(seqs), Param::byte_arrays(bytes)}));
    return {};
}

Result<std::vector<LiveFrame>> live_tail(Connection& c, model::Id run, int limit, std::int64_t after_epoch,
                                         std::uint64_t after_seq) {
    PERFRIG_TRY(const Rows rows, c.exec_binary("select machine_id, epoch, seq, bytes from live_frame where run_id = $1 "
                                               "and (epoch, seq) > ($2, $3) order by epoch desc, seq desc limit $4",
                                               {run, after_epoch, static_cast<std::int64_t>(after_seq), limit}));
    std::vector<LiveFrame> out;
    for (int i = rows.size() - 1; i >= 0; --i) {
        PERFRIG_TRY(auto frame, protocol::decode_samples(rows.bytes(i, 3)));
        out.push_back(
            {rows.integer(i, 0), rows.integer(i, 1), static_cast<std::uint64_t>(rows.integer(i, 2)), std::move(frame)});
    }
    return out;
}

Result<void> each_chunk(Connection& c, model::Id run, const Which& which,
                        const std::function<bool(const Chunk&)>& take) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c)); // the cursor lives in it
    PERFRIG_CHECK(c.exec("declare chunks no scroll cursor for select k.machine_id, k.series_id, k.start_ns, "
                         "k.offsets_ns, k.values from series_chunk k where k.run_id = $1 "
                         "and ($2 = '' or exists (select from series s where s.run_id = $1 "
                         "and s.machine_id = k.machine_id and s.id = k.series_id and s.name = $2)) "
                         "and ($3 = 0::bigint or (k.machine_id = $3 and k.series_id = $4)) "
                         "and k.start_ns + k.offsets_ns[array_upper(k.offsets_ns, 1)] > $5 "
                         "order by k.machine_id, k.series_id, k.start_ns",
                         {run, which.name, which.machine, which.series, which.after_ns}));
    for (bool wanted = true; wanted;) {
        PERFRIG_TRY(const Rows rows, c.exec_binary("fetch 100 from chunks"));
        if (rows.empty()) break;
        for (int i = 0; i < rows.size() && wanted; ++i) {
            Chunk chunk{rows.integer(i, 0), static_cast<int>(rows.integer(i, 1)), rows.integer(i, 2), {}};
            const auto offsets = rows.integers(i, 3);
            const auto values = rows.reals(i, 4);
            chunk.points.reserve(values.size());
            for (std::size_t k = 0; k < values.size(); ++k)
                chunk.points.push_back({chunk.start_ns + offsets.at(k), values[k]});
            wanted = take(chunk);
        }
    }
    PERFRIG_CHECK(c.exec("close chunks"));
    return transaction.commit();
}

Result<PageOfPoints> read_points(Connection& c, model::Id run, model::Id machine, int series, std::int64_t after_ns,
                                 std::size_t limit) {
    PageOfPoints out;
    auto& points = out.points;
    const auto sort = [&] { std::ranges::stable_sort(points, {}, &model::Point::time_ns); };
    const auto take = [&](const Chunk& chunk) {
        if (points.size() > limit) { // enough, unless this chunk begins before the page's end
            sort();
            if (chunk.start_ns > points[limit - 1].time_ns) return false;
        }
        const auto first = std::ranges::upper_bound(chunk.points, after_ns, {}, &model::Point::time_ns);
        points.insert(points.end(), first, chunk.points.end());
        return true;
    };
    PERFRIG_CHECK(each_chunk(c, run, {{}, machine, series, after_ns}, take));
    sort();
    if (points.size() <= limit) return out;
    const auto end = std::ranges::upper_bound(points, points[limit - 1].time_ns, {}, &model::Point::time_ns);
    out.more = end != points.end();
    points.erase(end, points.end());
    return out;
}

} // namespace perfrig::db::samples
