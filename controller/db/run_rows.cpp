#include "controller/db/run_rows.hpp"

#include "controller/db/sql.hpp"

namespace perfrig::db {

const std::string& select_runs(bool with_resolved) {
    static const auto select = [](const char* resolved) {
        return "select r.id, r.block_id, r.cell_id, r.submission_id, r.machine_id, coalesce(m.name, ''), e.name, "
               "c.levels, c.ordinal, r.position, r.replicate, r.attempt, r.retry_of, r.state, r.reason, " +
               utc_ns("r.deadline") + ", r.resolved_sha, r.verdict, " + utc_ns("r.sealed_at") + ", " +
               utc_ns("r.started_at") + ", " + utc_ns("r.ended_at") + ", " + resolved +
               " from run r join cell c on c.id = r.cell_id join submission s on s.id = r.submission_id "
               "join experiment e on e.id = s.experiment_id left join machine m on m.id = r.machine_id ";
    };
    static const std::string whole = select("r.resolved"), brief = select("null");
    return with_resolved ? whole : brief;
}

model::Run run_from(const Rows& rows, int i) {
    model::Run out;
    out.id = rows.integer(i, 0);
    out.block_id = rows.integer(i, 1);
    out.cell_id = rows.integer(i, 2);
    out.submission_id = rows.integer(i, 3);
    out.machine_id = rows.id(i, 4);
    out.machine_name = rows.text(i, 5);
    out.experiment = rows.text(i, 6);
    out.levels = string_map(rows.json(i, 7));
    out.cell_ordinal = static_cast<int>(rows.integer(i, 8));
    out.position = static_cast<int>(rows.integer(i, 9));
    out.replicate = static_cast<int>(rows.integer(i, 10));
    out.attempt = static_cast<int>(rows.integer(i, 11));
    out.retry_of = rows.id(i, 12);
    out.state = word(model::parse_run_state(rows.text(i, 13)));
    out.reason = rows.text(i, 14);
    out.deadline_utc_ns = rows.maybe_integer(i, 15);
    out.resolved_sha = rows.text(i, 16);
    out.verdict = word(model::parse_verdict(rows.text(i, 17)));
    out.sealed_utc_ns = rows.maybe_integer(i, 18);
    out.started_utc_ns = rows.maybe_integer(i, 19);
    out.ended_utc_ns = rows.maybe_integer(i, 20);
    if (!rows.is_null(i, 21)) out.resolved = rows.json(i, 21);
    return out;
}

} // namespace perfrig::db
