#include "controller/db/runs.hpp"

#include "controller/db/events.hpp"
#include "controller/db/run_rows.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::db::runs {

Result<model::Run> get(Connection& c, model::Id run) {
    static const std::string sql = select_runs(true) + "where r.id = $1";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {run}));
    if (rows.empty())
        return fail(ErrorKind::not_found, "find the run", std::to_string(run), "there is none", "see: perfrig status");
    return run_from(rows, 0);
}

Result<Page<model::Run>> list(Connection& c, const Filter& filter, PageRequest page) {
    static const std::string sql =
        select_runs(false) +
        "where ($1 = 0::bigint or r.id < $1) and ($3 = 0::bigint or r.submission_id = $3) "
        "and ($4 = 0::bigint or r.machine_id = $4) and ($5 = 0::bigint or r.block_id = $5) and ($6 = '' or r.state = "
        "$6) "
        "and (not $7 or r.state not in ('completed', 'refused', 'failed', 'cancelled', 'interrupted')) "
        "and ($8 = '' or e.name = $8) order by r.id desc limit $2";
    const int limit = std::clamp(page.limit, 1, 1000);
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {page.below, limit + 1, filter.submission, filter.machine,
                                                      filter.block, filter.state ? to_string(*filter.state) : "",
                                                      filter.open_only, filter.experiment}));
    Page<model::Run> out;
    for (int i = 0; i < std::min(rows.size(), limit); ++i) out.items.push_back(run_from(rows, i));
    if (rows.size() > limit) out.next = out.items.back().id;
    return out;
}

Result<std::vector<model::Run>> of_submission(Connection& c, model::Id submission) {
    static const std::string sql =
        select_runs(false) + "where r.submission_id = $1 order by c.ordinal, r.replicate, r.attempt";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {submission}));
    std::vector<model::Run> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(run_from(rows, i));
    return out;
}

Result<Moved> change_state(Connection& c, model::Id run, model::RunState state, std::string_view reason,
                           std::optional<Milliseconds> deadline_in, std::string_view actor) {
    static const std::string sql = "update run set state = $2, reason = $3, deadline = now() + " + interval_ms("$4") +
                                   ", started_at = case when $5 then coalesce(started_at, now()) else started_at end, "
                                   "ended_at = case when $6 then now() end, "
                                   // What never began left nothing to be sealed.
                                   "sealed_at = case when $6 and state = 'planned' then now() end where id = $1";
    const bool ends = is_end(state);
    const bool begins = !ends && state >= model::RunState::preparing;
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const Rows was, c.exec("select state from run where id = $1 for no key update", {run}));
    if (was.empty())
        return fail(ErrorKind::not_found, "change the state of run", std::to_string(run), "there is no such run");
    const model::RunState before = word(model::parse_run_state(was.text(0, 0)));
    if (before == state) return Moved::already_there;
    if (is_end(before)) return Moved::already_ended;
    std::optional<std::int64_t> deadline;
    if (deadline_in && !ends) deadline = deadline_in->count();
    PERFRIG_CHECK(c.exec(sql.c_str(), {run, to_string(state), reason, deadline, begins, ends}));
    if (ends)
        PERFRIG_CHECK(events::add(c, actor, "run/" + std::to_string(run), "ended",
                                  {{"from", to_string(before)}, {"state", to_string(state)}, {"reason", reason}}));
    PERFRIG_CHECK(transaction.commit());
    return Moved::yes;
}

Result<void> set_verdict(Connection& c, model::Id run, model::Verdict verdict) {
    PERFRIG_CHECK(c.exec("update run set verdict = $2 where id = $1", {run, to_string(verdict)}));
    return {};
}

Result<std::vector<model::Id>> unsealed(Connection& c, int limit) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select id from run where sealed_at is null and state in "
                       "('completed','refused','failed','cancelled','interrupted') order by id limit $1",
                       {limit}));
    std::vector<model::Id> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(rows.integer(i, 0));
    return out;
}

} // namespace perfrig::db::runs
