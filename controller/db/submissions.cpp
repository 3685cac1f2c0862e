#include "controller/db/submissions.hpp"

#include "controller/db/events.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::db::submissions {

namespace {

const std::string& columns() {
    static const std::string sql =
        "s.id, e.name, s.source, s.definition_sha, s.plan, s.priority, s.seed, s.machine_name, s.machine_labels, "
        "s.state, s.reason, s.cancel_requested, " +
        utc_ns("s.created_at") + ", " + utc_ns("s.ended_at") + " ";
    return sql;
}

model::Submission submission_from(const Rows& rows, int i) {
    model::Submission out;
    out.id = rows.integer(i, 0);
    out.experiment = rows.text(i, 1);
    out.source = rows.text(i, 2);
    out.definition_sha = rows.text(i, 3);
    out.plan = rows.json(i, 4);
    out.priority = static_cast<int>(rows.integer(i, 5));
    out.seed = rows.integer(i, 6);
    if (!rows.is_null(i, 7)) out.machine_name = rows.text(i, 7);
    out.machine_labels = rows.json(i, 8);
    out.state = word(model::parse_submission_state(rows.text(i, 9)));
    out.reason = rows.text(i, 10);
    out.cancel_requested = rows.boolean(i, 11);
    out.created_utc_ns = rows.integer(i, 12);
    out.ended_utc_ns = rows.maybe_integer(i, 13);
    return out;
}

// A definition may have a MiB: who does not need it must not fetch it.
Result<model::Submission> select_one(Connection& c, model::Id submission, const char* definition) {
    const std::string sql = "select " + columns() + ", " + definition +
                            " from submission s join experiment e on e.id = s.experiment_id where s.id = $1";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {submission}));
    if (rows.empty())
        return fail(ErrorKind::not_found, "find the submission", std::to_string(submission), "there is none",
                    "see: perfrig status");
    model::Submission out = submission_from(rows, 0);
    out.definition = rows.text(0, 14);
    return out;
}

std::string subject(model::Id submission) { return "submission/" + std::to_string(submission); }

} // namespace

Result<model::Submission> get(Connection& c, model::Id submission) { return select_one(c, submission, "s.definition"); }

Result<model::Submission> brief(Connection& c, model::Id submission) { return select_one(c, submission, "''"); }

Result<Page<model::Submission>> list(Connection& c, PageRequest page, std::optional<model::SubmissionState> state,
                                     std::string_view experiment) {
    static const std::string sql = "select " + columns() +
                                   "from submission s join experiment e on e.id = s.experiment_id "
                                   "where ($1 = 0::bigint or s.id < $1) and ($3 = '' or s.state = $3) "
                                   "and ($4 = '' or e.name = $4) order by s.id desc limit $2";
    const int limit = std::clamp(page.limit, 1, 1000);
    PERFRIG_TRY(const Rows rows,
                c.exec(sql.c_str(), {page.below, limit + 1, state ? to_string(*state) : "", experiment}));
    Page<model::Submission> out;
    for (int i = 0; i < std::min(rows.size(), limit); ++i) out.items.push_back(submission_from(rows, i));
    if (rows.size() > limit) out.next = out.items.back().id;
    return out;
}

Result<model::RunCounts> counts(Connection& c, model::Id submission) {
    // Only an interrupted run may have a next attempt, which then counts in its place.
    PERFRIG_TRY(const Rows rows,
                c.exec("select r.state, r.verdict, count(*) from run r where r.submission_id = $1 "
                       "and r.state <> 'interrupted' group by 1, 2 union all "
                       "select r.state, r.verdict, count(*) from run r where r.submission_id = $1 "
                       "and r.state = 'interrupted' and not exists (select from run n where n.cell_id = r.cell_id "
                       "and n.replicate = r.replicate and n.attempt = r.attempt + 1) group by 1, 2",
                       {submission}));
    model::RunCounts out;
    for (int i = 0; i < rows.size(); ++i) {
        const model::RunState state = word(model::parse_run_state(rows.text(i, 0)));
        out.by_state[state] += rows.integer(i, 2);
        if (is_end(state)) out.by_verdict[word(model::parse_verdict(rows.text(i, 1)))] += rows.integer(i, 2);
    }
    return out;
}

Result<std::vector<model::Cell>> cells(Connection& c, model::Id submission, int after, int limit) {
    PERFRIG_TRY(const Rows rows, c.exec("select id, ordinal, cell_key, levels from cell where submission_id = $1 "
                                        "and ordinal > $2 order by ordinal limit $3",
                                        {submission, after, limit}));
    std::vector<model::Cell> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back({rows.integer(i, 0), submission, static_cast<int>(rows.integer(i, 1)),
                       std::string(rows.text(i, 2)), string_map(rows.json(i, 3))});
    return out;
}

Result<std::vector<model::Block>> blocks(Connection& c, model::Id submission) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select b.id, b.ordinal, b.boot_state, b.state, b.reason, coalesce((select m.name from run r "
                       "join machine m on m.id = r.machine_id where r.id = (select id from run where block_id = b.id "
                       "order by position desc, attempt desc limit 1)), '') from block b "
                       "where b.submission_id = $1 order by b.ordinal",
                       {submission}));
    std::vector<model::Block> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back({rows.integer(i, 0), submission, static_cast<int>(rows.integer(i, 1)), rows.json(i, 2),
                       word(model::parse_block_state(rows.text(i, 3))), std::string(rows.text(i, 4)),
                       std::string(rows.text(i, 5))});
    return out;
}

Result<Page<Experiment>> experiments(Connection& c, PageRequest page) {
    static const std::string sql = "select e.id, e.name, " + utc_ns("e.created_at") +
                                   ", count(s.id), coalesce(max(s.id), 0) from experiment e "
                                   "left join submission s on s.experiment_id = e.id "
                                   "where ($1 = 0::bigint or e.id < $1) group by e.id order by e.id desc limit $2";
    const int limit = std::clamp(page.limit, 1, 1000);
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {page.below, limit + 1}));
    Page<Experiment> out;
    for (int i = 0; i < std::min(rows.size(), limit); ++i)
        out.items.push_back({rows.integer(i, 0), std::string(rows.text(i, 1)), rows.integer(i, 2), rows.integer(i, 3),
                             rows.integer(i, 4)});
    if (rows.size() > limit) out.next = out.items.back().id;
    return out;
}

Result<model::Submission> request_cancel(Connection& c, model::Id submission, std::string_view reason,
                                         std::string_view actor) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const Rows marked, c.exec("update submission set cancel_requested = true, reason = $2 where id = $1 "
                                          "and state in ('queued', 'running') and not cancel_requested",
                                          {submission, reason}));
    if (marked.affected() > 0) {
        // Blocks first: a grant that is under way holds its block, and is seen here when it is done.
        PERFRIG_CHECK(c.exec("update block set state = 'cancelled', reason = $2 where submission_id = $1 "
                             "and state = 'pending'",
                             {submission, reason}));
        PERFRIG_CHECK(c.exec("update run r set state = 'cancelled', reason = $2, ended_at = now(), sealed_at = now(), "
                             "deadline = null from block b where b.id = r.block_id and b.state = 'cancelled' "
                             "and r.submission_id = $1 and r.state = 'planned'",
                             {submission, reason}));
        PERFRIG_CHECK(events::add(c, actor, subject(submission), "cancel", {{"reason", reason}}));
        PERFRIG_CHECK(finish_if_done(c, submission));
    }
    PERFRIG_TRY(model::Submission out, get(c, submission));
    PERFRIG_CHECK(transaction.commit());
    return out;
}

Result<model::SubmissionState> finish_if_done(Connection& c, model::Id submission) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const Rows row,
                c.exec("select state, cancel_requested from submission where id = $1 for no key update", {submission}));
    if (row.empty())
        return fail(ErrorKind::not_found, "finish the submission", std::to_string(submission), "there is none");
    const model::SubmissionState before = word(model::parse_submission_state(row.text(0, 0)));
    const bool cancelled = row.boolean(0, 1);
    if (is_end(before)) return before;
    PERFRIG_TRY(const Rows left,
                c.exec("with last as (select distinct on (cell_id, replicate) state, attempt, sealed_at from run "
                       "where submission_id = $1 order by cell_id, replicate, attempt desc) select "
                       "(select count(*) from run where submission_id = $1 and sealed_at is null) + "
                       "(select count(*) from block where submission_id = $1 "
                       "and state in ('pending', 'granted', 'active', 'releasing')) + "
                       "(select count(*) from last where state = 'interrupted' and attempt < 3 and not $2), "
                       "(select count(*) from last where state in ('failed', 'interrupted', 'cancelled')), "
                       "(select count(*) from last where state = 'completed')",
                       {submission, cancelled}));
    if (left.integer(0, 0) > 0) return before;
    const model::SubmissionState after = cancelled                 ? model::SubmissionState::cancelled
                                         : left.integer(0, 1) > 0  ? model::SubmissionState::failed
                                         : left.integer(0, 2) == 0 ? model::SubmissionState::failed // all refused
                                                                   : model::SubmissionState::completed;
    PERFRIG_CHECK(
        c.exec("update submission set state = $2, ended_at = now() where id = $1", {submission, to_string(after)}));
    PERFRIG_CHECK(events::add(c, "controller", subject(submission), "ended", {{"state", to_string(after)}}));
    PERFRIG_CHECK(transaction.commit());
    return after;
}

Result<std::vector<model::Id>> open(Connection& c) {
    PERFRIG_TRY(const Rows rows, c.exec("select id from submission where state in ('queued', 'running') order by id"));
    std::vector<model::Id> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(rows.integer(i, 0));
    return out;
}

} // namespace perfrig::db::submissions
