// Sealing: frames of a run that ended become chunks of arrays per series.
#include "controller/db/chunk_writer.hpp"
#include "controller/db/run_facts.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/samples.hpp"
#include "controller/db/transaction.hpp"

namespace perfrig::db::samples {

namespace {

model::Finding seal_finding(model::Id run, const char* check, std::string subject, std::string message) {
    model::Finding out;
    out.run_id = run;
    out.check_name = check;
    out.severity = model::Severity::warning;
    out.subject = std::move(subject);
    out.message = std::move(message);
    out.source = "controller";
    return out;
}

// Reads the frames through a cursor, whose snapshot is fixed when it is declared.
Result<Sealed> seal_frames(Connection& c, model::Id run) {
    Sealed out;
    ChunkWriter writer(c, run);
    PERFRIG_CHECK(c.exec("declare frames no scroll cursor for select machine_id, epoch, seq, bytes from live_frame "
                         "where run_id = $1 order by machine_id, epoch, seq",
                         {run}));
    while (true) {
        PERFRIG_TRY(const Rows rows, c.exec_binary("fetch 100 from frames"));
        if (rows.empty()) break;
        for (int i = 0; i < rows.size(); ++i) {
            ++out.frames;
            const auto frame = protocol::decode_samples(rows.bytes(i, 3));
            if (frame) {
                PERFRIG_CHECK(writer.add(rows.integer(i, 0), *frame));
                continue;
            }
            const std::string which =
                "frame " + std::to_string(rows.integer(i, 1)) + "/" + std::to_string(rows.integer(i, 2));
            const auto finding = seal_finding(run, "frame_unreadable", which, frame.error().text());
            PERFRIG_CHECK(facts::add_findings(c, {&finding, 1}));
        }
    }
    PERFRIG_CHECK(c.exec("close frames"));
    PERFRIG_CHECK(writer.finish());
    out.points = writer.points();
    out.chunks = writer.chunks();
    return out;
}

Result<void> find_undeclared(Connection& c, model::Id run) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select count(distinct k.series_id), min(k.series_id) from series_chunk k where k.run_id = $1 "
                       "and not exists (select from series s where s.run_id = k.run_id and s.machine_id = k.machine_id "
                       "and s.id = k.series_id)",
                       {run}));
    if (rows.integer(0, 0) == 0) return {};
    const auto finding = seal_finding(run, "series_undeclared", "series " + std::to_string(rows.integer(0, 1)),
                                      std::to_string(rows.integer(0, 0)) +
                                          " series have samples but were never declared: nothing can be "
                                          "derived from them");
    return facts::add_findings(c, {&finding, 1});
}

} // namespace

Result<Sealed> seal(Connection& c, model::Id run) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    // Ingest takes the same lock before it stores frames: none can come between reading and deleting.
    PERFRIG_TRY(const Rows row,
                c.exec("select state, sealed_at is not null from run where id = $1 for no key update", {run}));
    if (row.empty()) return fail(ErrorKind::not_found, "seal run", std::to_string(run), "there is none");
    PERFRIG_TRY(const model::RunState state, model::parse_run_state(row.text(0, 0)));
    if (!is_end(state))
        return fail(ErrorKind::conflict, "seal run", std::to_string(run),
                    "it is still " + std::string(to_string(state)), "wait for its end");
    PERFRIG_TRY(const Sealed out, seal_frames(c, run));
    if (out.frames > 0) {
        PERFRIG_CHECK(find_undeclared(c, run));
        PERFRIG_CHECK(c.exec("delete from live_frame where run_id = $1", {run}));
    }
    if (out.frames > 0 || !row.boolean(0, 1))
        PERFRIG_CHECK(c.exec("update run set sealed_at = now() where id = $1", {run}));
    PERFRIG_CHECK(transaction.commit());
    return out;
}

} // namespace perfrig::db::samples
