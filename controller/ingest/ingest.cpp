#include "controller/ingest/ingest.hpp"

#include "common/protocol/run_event.hpp"
#include "common/protocol/sample_frame.hpp"
#include "controller/db/events.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/run_facts.hpp"
#include "controller/db/samples.hpp"
#include "controller/db/transaction.hpp"
#include "controller/ingest/apply_event.hpp"

#include <functional>
#include <map>
#include <set>

namespace perfrig::ingest {

namespace {

// Errors of the record rather than of the database: the record is to blame and will fail again.
bool blames_record(const Error& error) {
    return error.kind != ErrorKind::unavailable && error.kind != ErrorKind::timed_out;
}

struct RunRow {
    bool ours = false, ended = false, sealed = false;
};

class Batch {
  public:
    Batch(db::Connection& c, const model::Machine& machine, std::int64_t epoch)
        : c_(c), machine_(machine), epoch_(epoch), actor_("agent/" + machine.name) {}

    Result<void> store(std::span<const protocol::SpoolRecord> records);
    Stored take() { return std::move(out_); }

  private:
    struct Event {
        std::uint64_t seq = 0;
        protocol::RunEvent event;
    };
    Result<void> read(std::span<const protocol::SpoolRecord> records);
    Result<void> look_up_runs();
    Result<bool> accept(std::uint64_t seq, model::Id run);
    Result<void> apply(const Event& one);
    Result<void> store_frames();
    Result<void> store_series();
    Result<void> store_metrics();
    Result<void> unseal_late_runs();
    Result<void> reject(std::uint64_t seq, model::Id run, const std::string& reason);
    // Does it in a savepoint. False: the records are to blame.
    Result<bool> attempt(const std::function<Result<void>()>& work, std::string& reason);

    db::Connection& c_;
    const model::Machine& machine_;
    std::int64_t epoch_;
    std::string actor_;
    Stored out_;
    std::vector<Event> events_;
    std::vector<db::samples::FrameRow> frames_;
    std::map<model::Id, RunRow> runs_;
    struct NewSeries {
        std::uint64_t seq;
        model::SeriesInfo info;
    };
    struct NewMetric {
        std::uint64_t seq;
        model::Metric metric;
    };
    std::map<model::Id, std::vector<NewSeries>> series_;
    std::map<model::Id, std::vector<NewMetric>> metrics_;
    std::set<model::Id> late_; // got evidence after their end
};

Result<void> Batch::reject(std::uint64_t seq, model::Id run, const std::string& reason) {
    ++out_.rejected;
    return db::events::add(c_, actor_, "machine/" + machine_.name, "record_rejected",
                           {{"epoch", epoch_}, {"seq", seq}, {"run", run}, {"reason", reason}});
}

Result<bool> Batch::attempt(const std::function<Result<void>()>& work, std::string& reason) {
    PERFRIG_TRY(db::Transaction savepoint, db::Transaction::begin(c_));
    const auto done = work();
    if (!done) {
        // A deadlock or a serialization failure ends the whole transaction; it is tried again from its start.
        if (!blames_record(done.error()) || db::worth_retrying(c_)) return done.error();
        reason = done.error().text();
        return false;
    }
    PERFRIG_CHECK(savepoint.commit());
    return true;
}

Result<void> Batch::read(std::span<const protocol::SpoolRecord> records) {
    for (const protocol::SpoolRecord& record : records) {
        if (record.kind == protocol::RecordKind::samples) {
            auto frame = protocol::decode_samples(record.payload);
            if (!frame) {
                PERFRIG_CHECK(reject(record.seq, 0, frame.error().text()));
                continue;
            }
            frames_.push_back({frame->run, record.seq, record.payload});
            continue;
        }
        auto event = protocol::decode_run_event(record.payload);
        if (event)
            events_.push_back({record.seq, std::move(*event)});
        else
            PERFRIG_CHECK(reject(record.seq, 0, event.error().text()));
    }
    return {};
}

// Locks the runs (see db::samples::seal), in the order of their ids.
Result<void> Batch::look_up_runs() {
    std::set<std::int64_t> wanted;
    for (const Event& one : events_) wanted.insert(one.event.run);
    for (const auto& frame : frames_) wanted.insert(frame.run);
    if (wanted.empty()) return {};
    const std::vector<std::int64_t> ids(wanted.begin(), wanted.end());
    PERFRIG_TRY(const db::Rows rows,
                c_.exec("select id, machine_id, state, sealed_at is not null from run where id = any ($1) order by id "
                        "for no key update",
                        {db::Param::array(ids)}));
    for (int i = 0; i < rows.size(); ++i) {
        PERFRIG_TRY(const model::RunState state, model::parse_run_state(rows.text(i, 2)));
        runs_[rows.integer(i, 0)] = {rows.id(i, 1) == machine_.id, is_end(state), rows.boolean(i, 3)};
    }
    return {};
}

Result<bool> Batch::accept(std::uint64_t seq, model::Id run) {
    const auto known = runs_.find(run);
    if (known != runs_.end() && known->second.ours) return true;
    const std::string reason = known == runs_.end() ? "there is no run " + std::to_string(run)
                                                    : "run " + std::to_string(run) + " is not this machine's";
    PERFRIG_CHECK(reject(seq, run, reason));
    return false;
}

Result<void> Batch::apply(const Event& one) {
    const model::Id run = one.event.run;
    std::string reason;
    if (const auto* declared = std::get_if<protocol::SeriesDeclared>(&one.event.body)) {
        auto info = series_of(machine_.id, *declared);
        if (!info) return reject(one.seq, run, info.error().text());
        series_[run].push_back({one.seq, std::move(*info)});
        return {};
    }
    if (const auto* read = std::get_if<protocol::MetricRead>(&one.event.body)) {
        metrics_[run].push_back({one.seq, metric_of(*read)});
        return {};
    }
    Applied applied;
    const auto work = [&]() -> Result<void> {
        PERFRIG_TRY(applied, apply_event(c_, machine_.id, one.event, actor_));
        return {};
    };
    PERFRIG_TRY(const bool stored, attempt(work, reason));
    if (!stored) return reject(one.seq, run, reason);
    if (applied.evidence && runs_[run].ended) late_.insert(run);
    if (!applied.ended) return {};
    out_.to_finish.push_back(run);
    if (std::get<protocol::StateChanged>(one.event.body).state == "interrupted") out_.interrupted.push_back(run);
    return {};
}

Result<void> Batch::store_frames() {
    if (frames_.empty()) return {};
    std::string reason;
    const auto all = [&] { return db::samples::store_frames(c_, machine_.id, epoch_, frames_); };
    PERFRIG_TRY(const bool stored, attempt(all, reason));
    for (const auto& frame : frames_) {
        if (!stored) {
            const auto one = [&] { return db::samples::store_frames(c_, machine_.id, epoch_, {&frame, 1}); };
            PERFRIG_TRY(const bool alone, attempt(one, reason));
            if (!alone) {
                PERFRIG_CHECK(reject(frame.seq, frame.run, reason));
                continue;
            }
        }
        if (runs_[frame.run].ended) late_.insert(frame.run);
    }
    return {};
}

Result<void> Batch::store_series() {
    std::string reason;
    for (const auto& [run, given] : series_) {
        std::vector<model::SeriesInfo> infos;
        for (const NewSeries& one : given) infos.push_back(one.info);
        const auto all = [&] { return db::facts::put_series(c_, run, infos); };
        PERFRIG_TRY(const bool stored, attempt(all, reason));
        if (runs_[run].ended) late_.insert(run);
        for (const NewSeries& one : given) {
            if (stored) break;
            const auto alone = [&] { return db::facts::put_series(c_, run, {&one.info, 1}); };
            PERFRIG_TRY(const bool good, attempt(alone, reason));
            if (!good) PERFRIG_CHECK(reject(one.seq, run, reason));
        }
    }
    return {};
}

Result<void> Batch::store_metrics() {
    std::string reason;
    for (const auto& [run, given] : metrics_) {
        std::vector<model::Metric> metrics;
        for (const NewMetric& one : given) metrics.push_back(one.metric);
        const auto all = [&] { return db::facts::put_metrics(c_, run, metrics); };
        PERFRIG_TRY(const bool stored, attempt(all, reason));
        if (runs_[run].ended) late_.insert(run);
        for (const NewMetric& one : given) {
            if (stored) break;
            const auto alone = [&] { return db::facts::put_metrics(c_, run, {&one.metric, 1}); };
            PERFRIG_TRY(const bool good, attempt(alone, reason));
            if (!good) PERFRIG_CHECK(reject(one.seq, run, reason));
        }
    }
    return {};
}

// Their evaluation no longer rests on all there is: seal and evaluate again.
Result<void> Batch::unseal_late_runs() {
    for (const model::Id run : late_) {
        PERFRIG_CHECK(c_.exec("update run set sealed_at = null where id = $1", {run}));
        out_.to_finish.push_back(run);
    }
    return {};
}

Result<void> Batch::store(std::span<const protocol::SpoolRecord> records) {
    out_.stored = records.size();
    PERFRIG_CHECK(read(records));
    PERFRIG_CHECK(look_up_runs());
    std::vector<db::samples::FrameRow> accepted;
    for (auto& frame : frames_) {
        PERFRIG_TRY(const bool ours, accept(frame.seq, frame.run));
        if (ours) accepted.push_back(std::move(frame));
    }
    frames_ = std::move(accepted);
    for (const Event& one : events_) {
        PERFRIG_TRY(const bool ours, accept(one.seq, one.event.run));
        if (ours) PERFRIG_CHECK(apply(one));
    }
    PERFRIG_CHECK(store_series());
    PERFRIG_CHECK(store_metrics());
    PERFRIG_CHECK(store_frames());
    PERFRIG_CHECK(unseal_late_runs());
    for (const auto& [run, row] : runs_)
        if (row.ours) out_.changed.push_back(run);
    out_.stored -= out_.rejected;
    return {};
}

} // namespace

Result<Stored> store_batch(db::Connection& c, model::Id machine_id, const protocol::RecordBatch& batch) {
    for (std::size_t i = 1; i < batch.records.size(); ++i)
        if (batch.records[i].seq != batch.records[i - 1].seq + 1)
            return fail(ErrorKind::bad_input, "store a batch", "record " + std::to_string(batch.records[i].seq),
                        "it does not come behind " + std::to_string(batch.records[i - 1].seq),
                        "send records in their order");
    PERFRIG_TRY(db::Transaction transaction, db::Transaction::begin(c));
    PERFRIG_TRY(const model::Machine machine, db::machines::find_by_id(c, machine_id));
    PERFRIG_TRY(const std::uint64_t last, db::samples::lock_cursor(c, machine_id, batch.epoch, protocol::main_stream));
    std::span<const protocol::SpoolRecord> fresh(batch.records);
    while (!fresh.empty() && fresh.front().seq <= last) fresh = fresh.subspan(1);
    if (!fresh.empty() && fresh.front().seq != last + 1)
        return fail(ErrorKind::conflict, "store a batch of " + machine.name,
                    "epoch " + std::to_string(batch.epoch) + ", record " + std::to_string(fresh.front().seq),
                    "gap: the last record stored is " + std::to_string(last),
                    "send again from record " + std::to_string(last + 1));
    Batch work(c, machine, batch.epoch);
    PERFRIG_CHECK(work.store(fresh));
    Stored out = work.take();
    out.skipped = batch.records.size() - fresh.size();
    out.cursor = {batch.epoch, protocol::main_stream, fresh.empty() ? last : fresh.back().seq};
    if (!fresh.empty())
        PERFRIG_CHECK(
            db::samples::advance_cursor(c, machine_id, batch.epoch, protocol::main_stream, out.cursor.last_seq));
    PERFRIG_CHECK(transaction.commit());
    return out;
}

} // namespace perfrig::ingest
