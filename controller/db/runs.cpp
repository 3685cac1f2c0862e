#include "controller/db/runs.hpp"

#include "controller/db/events.hpp"
#include "controller/db/run_rows.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::db::runs {

namespace {
Result<std::vector<model::Run>> select(Connection& c, const std::string& rest, const Params& params) {
    PERFRIG_TRY(const Rows rows, c.exec((select_runs(false) + rest).c_str(), params));
    std::vector<model::Run> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(run_from(rows, i));
    return out;
}
} // namespace

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
        "and ($4 = '' or m.name = $4) and ($5 = 0::bigint or r.block_id = $5) and ($6 = '' or r.state = "
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

Result<RunsInOrder> in_order(Connection& c, model::Id submission, model::Id after, int limit) {
    // The ids first, by the index run_by_block: joining every run of a large submission takes longer than its page. Its
    // blocks' ids rise with their ordinals.
    PERFRIG_TRY(
        auto found,
        select(c,
               "where r.id in (select p.id from run p where p.submission_id = $1 "
               "and p.block_id >= (select id from block where submission_id = $1 order by ordinal limit 1) "
               "and p.block_id <= (select id from block where submission_id = $1 order by ordinal desc limit 1) "
               "and ($2 = 0::bigint or (p.block_id, p.position, p.attempt) > "
               "(select block_id, position, attempt from run where id = $2)) "
               "order by p.block_id, p.position, p.attempt limit $3) "
               "order by r.block_id, r.position, r.attempt",
               {submission, after, limit + 1}));
    RunsInOrder out{std::move(found), false};
    out.more = out.items.size() > static_cast<std::size_t>(limit);
    if (out.more) out.items.pop_back();
    return out;
}

Result<std::vector<model::Run>> current(Connection& c, model::Id submission, int limit) {
    return select(c,
                  "where r.id in (select p.id from run p where p.submission_id = $1 and p.state in ('assigned', "
                  "'preparing', 'warming', 'measuring', 'stopping', 'uploading') order by p.state = 'assigned', "
                  "p.block_id, p.position, p.attempt limit $2) "
                  "order by r.state = 'assigned', r.block_id, r.position, r.attempt",
                  {submission, limit});
}

Result<std::vector<model::Run>> of_cells(Connection& c, const std::vector<model::Id>& cells) {
    return select(c, "where r.cell_id = any ($1) order by r.id", {Param::array(cells)});
}

Result<std::vector<model::Run>> by_ids(Connection& c, const std::vector<model::Id>& runs) {
    return select(c, "where r.id = any ($1) order by r.id", {Param::array(runs)});
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
    if (!model::may_follow(before, state))
        return fail(ErrorKind::bad_input, "change the state of run", std::to_string(run),
                    std::string(to_string(state)) + " can't follow " + std::string(to_string(before)));
    std::optional<std::int64_t> deadline;
    if (!deadline_in || deadline_in->count() <= 0) deadline_in = model::longest_stay(state);
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
