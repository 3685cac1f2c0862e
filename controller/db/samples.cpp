#include "controller/db/samples.hpp"

#include "controller/db/runs.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>
#include <map>

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

Result<std::vector<model::Series>> read_series(Connection& c, model::Id run, std::string_view name) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c)); // the cursor lives in it
    PERFRIG_TRY(const auto infos, runs::series(c, run));
    std::map<std::pair<model::Id, int>, std::size_t> place;
    std::vector<model::Series> out;
    for (const model::SeriesInfo& info : infos) {
        if (!name.empty() && info.name != name) continue;
        place[{info.machine_id, info.id}] = out.size();
        out.push_back({info, {}});
    }
    std::vector<int> ids;
    for (const model::Series& one : out) ids.push_back(one.info.id);
    PERFRIG_CHECK(
        c.exec("declare chunks no scroll cursor for select machine_id, series_id, start_ns, offsets_ns, values "
               "from series_chunk where run_id = $1 and series_id = any ($2)",
               {run, Param::array(ids)}));
    std::size_t points = 0;
    while (true) {
        PERFRIG_TRY(const Rows rows, c.exec_binary("fetch 500 from chunks"));
        if (rows.empty()) break;
        for (int i = 0; i < rows.size(); ++i) {
            const auto found = place.find({rows.integer(i, 0), static_cast<int>(rows.integer(i, 1))});
            if (found == place.end()) continue;
            const auto offsets = rows.integers(i, 3);
            const auto values = rows.reals(i, 4);
            points += values.size();
            if (points > most_points)
                return fail(ErrorKind::conflict, "read the samples of run", std::to_string(run),
                            "there are more than " + std::to_string(most_points), "ask for one series by its name");
            auto& into = out[found->second].points;
            for (std::size_t k = 0; k < values.size(); ++k)
                into.push_back({rows.integer(i, 2) + offsets.at(k), values[k]});
        }
    }
    PERFRIG_CHECK(c.exec("close chunks"));
    for (model::Series& one : out) std::ranges::stable_sort(one.points, {}, &model::Point::time_ns);
    PERFRIG_CHECK(transaction.commit());
    return out;
}

} // namespace perfrig::db::samples
