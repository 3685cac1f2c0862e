#include "controller/db/queue.hpp"

#include "controller/db/events.hpp"
#include "controller/db/partitions.hpp"
#include "controller/db/run_rows.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/transaction.hpp"

namespace perfrig::db::queue {

namespace {

constexpr const char* open_states = "('planned','assigned','preparing','warming','measuring','stopping','uploading')";

model::Block block_from(const Rows& rows, int i) {
    return {rows.integer(i, 0),
            rows.integer(i, 1),
            static_cast<int>(rows.integer(i, 2)),
            rows.json(i, 3),
            word(model::parse_block_state(rows.text(i, 4))),
            std::string(rows.text(i, 5)),
            {}};
}
constexpr const char* block_columns = "b.id, b.submission_id, b.ordinal, b.boot_state, b.state, b.reason";

Result<std::vector<model::Run>> select(Connection& c, bool resolved, const std::string& rest, const Params& params) {
    PERFRIG_TRY(const Rows rows, c.exec((select_runs(resolved) + rest).c_str(), params));
    std::vector<model::Run> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(run_from(rows, i));
    return out;
}

// What is held locked while a block is granted.
struct Claim {
    model::Id machine = 0, block = 0;
    std::string machine_name;
};

Result<Granted> grant_claimed(Connection& c, const Claim& claim, Milliseconds lease_for, Milliseconds start_within) {
    PERFRIG_CHECK(c.exec(("insert into lease (machine_id, block_id, token, renew_by) values ($1, $2, "
                          "nextval('fencing_token'), now() + " +
                          interval_ms("$3") + ")")
                             .c_str(),
                         {claim.machine, claim.block, std::int64_t(lease_for.count())}));
    PERFRIG_CHECK(c.exec("update block set state = 'granted', reason = '' where id = $1", {claim.block}));
    PERFRIG_CHECK(c.exec("update machine set state = 'leased', state_reason = '' where id = $1", {claim.machine}));
    PERFRIG_CHECK(c.exec("update submission s set state = 'running' from block b where b.id = $1 "
                         "and s.id = b.submission_id and s.state = 'queued'",
                         {claim.block}));
    PERFRIG_CHECK(c.exec(("update run set state = 'assigned', machine_id = $2, deadline = now() + " +
                          interval_ms("$3") + " where block_id = $1 and state = 'planned'")
                             .c_str(),
                         {claim.block, claim.machine, std::int64_t(start_within.count())}));
    Granted out;
    PERFRIG_TRY(const auto lease, lease_of(c, claim.machine));
    out.lease = lease.value();
    PERFRIG_TRY(out.block, block(c, claim.block));
    PERFRIG_TRY(out.runs,
                select(c, true, "where r.block_id = $1 and r.state = 'assigned' order by r.position, r.attempt",
                       {claim.block}));
    PERFRIG_CHECK(events::add(c, "controller", "machine/" + claim.machine_name, "lease_granted",
                              {{"block", claim.block}, {"token", out.lease.token}}));
    return out;
}

} // namespace

Result<std::vector<PendingBlock>> pending(Connection& c, int limit) {
    const std::string sql = std::string("select ") + block_columns +
                            ", s.priority, s.machine_name, s.machine_labels from block b "
                            "join submission s on s.id = b.submission_id where b.state = 'pending' "
                            "and s.state in ('queued', 'running') and not s.cancel_requested "
                            "order by s.priority desc, s.id, b.ordinal limit $1";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {limit}));
    std::vector<PendingBlock> out;
    for (int i = 0; i < rows.size(); ++i) {
        PendingBlock one;
        one.block = block_from(rows, i);
        one.priority = static_cast<int>(rows.integer(i, 6));
        if (!rows.is_null(i, 7)) one.machine_name = rows.text(i, 7);
        one.machine_labels = rows.json(i, 8);
        out.push_back(std::move(one));
    }
    return out;
}

Result<std::optional<Granted>> grant_next(Connection& c, model::Id machine, Milliseconds lease_for,
                                          Milliseconds start_within) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    // The machine first, waiting: whoever else decides about it is done when we look.
    PERFRIG_TRY(const Rows free,
                c.exec("select name, state = 'idle' from machine where id = $1 for no key update", {machine}));
    if (free.empty())
        return fail(ErrorKind::not_found, "grant a block to machine", std::to_string(machine), "there is none");
    PERFRIG_TRY(const auto lease, lease_of(c, machine));
    if (!free.boolean(0, 1) || lease) return std::optional<Granted>();
    // Then a block that nobody else is about to grant or cancel. Its submission is locked with it, and neither is
    // waited for: cancelling locks the submission first, and the two must not wait for each other.
    PERFRIG_TRY(const Rows found,
                c.exec("select b.id from block b join submission s on s.id = b.submission_id "
                       "join machine m on m.id = $1 where b.state = 'pending' and s.state in ('queued', 'running') "
                       "and not s.cancel_requested and (s.machine_name is null or s.machine_name = m.name) "
                       "and m.labels @> s.machine_labels order by s.priority desc, s.id, b.ordinal limit 1 "
                       "for no key update of b, s skip locked",
                       {machine}));
    if (found.empty()) return std::optional<Granted>();
    const Claim claim{machine, found.integer(0, 0), std::string(free.text(0, 0))};
    PERFRIG_TRY(Granted granted, grant_claimed(c, claim, lease_for, start_within));
    PERFRIG_CHECK(transaction.commit());
    return std::optional(std::move(granted));
}

Result<Granted> grant(Connection& c, model::Id block, model::Id machine, Milliseconds lease_for,
                      Milliseconds start_within) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const Rows free, c.exec("select name, state from machine where id = $1 for no key update", {machine}));
    if (free.empty())
        return fail(ErrorKind::not_found, "grant a block to machine", std::to_string(machine), "there is none");
    PERFRIG_TRY(const auto lease, lease_of(c, machine));
    if (free.text(0, 1) != "idle" || lease)
        return fail(ErrorKind::conflict, "grant a block to machine", std::string(free.text(0, 0)),
                    lease ? "another block has its lease" : "it is " + std::string(free.text(0, 1)));
    PERFRIG_CHECK(c.exec("select from submission where id = (select submission_id from block where id = $1) "
                         "for no key update",
                         {block})); // before the block, as a cancel does
    PERFRIG_TRY(const Rows waits,
                c.exec("select b.id from block b join submission s on s.id = b.submission_id where b.id = $1 "
                       "and b.state = 'pending' and s.state in ('queued', 'running') and not s.cancel_requested "
                       "for no key update of b",
                       {block}));
    if (waits.empty())
        return fail(ErrorKind::conflict, "grant block", std::to_string(block), "it does not wait to be granted");
    const Claim claim{machine, block, std::string(free.text(0, 0))};
    PERFRIG_TRY(Granted granted, grant_claimed(c, claim, lease_for, start_within));
    PERFRIG_CHECK(transaction.commit());
    return granted;
}

Result<model::Block> block(Connection& c, model::Id block) {
    const std::string sql = std::string("select ") + block_columns + " from block b where b.id = $1";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {block}));
    if (rows.empty()) return fail(ErrorKind::not_found, "find the block", std::to_string(block), "there is none");
    return block_from(rows, 0);
}

Result<std::vector<model::Run>> runs_of_block(Connection& c, model::Id block) {
    return select(c, true, "where r.block_id = $1 order by r.position, r.attempt", {block});
}

Result<BlockProgress> progress(Connection& c, model::Id block) {
    const std::string sql = std::string("select count(*) filter (where state in ") + open_states +
                            "), count(*) filter (where state not in " + open_states +
                            " and sealed_at is null) from run where block_id = $1";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {block}));
    return BlockProgress{rows.integer(0, 0), rows.integer(0, 1)};
}

Result<bool> set_resolved(Connection& c, model::Id run, const Json& resolved, std::string_view sha) {
    PERFRIG_TRY(const Rows done, c.exec("update run set resolved = $2::jsonb, resolved_sha = $3 where id = $1 "
                                        "and state in ('planned', 'assigned') and started_at is null",
                                        {run, resolved, sha}));
    return done.affected() == 1;
}

Result<std::optional<model::Run>> retry(Connection& c, model::Id run, Milliseconds start_within) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    // The submission, so that a cancel is either seen or comes after; then the block, so that a grant is.
    PERFRIG_TRY(const Rows known,
                c.exec("select s.cancel_requested or s.state not in ('queued', 'running') from submission s "
                       "where s.id = (select submission_id from run where id = $1) for no key update of s",
                       {run}));
    if (known.empty()) return fail(ErrorKind::not_found, "retry run", std::to_string(run), "there is none");
    if (known.boolean(0, 0)) return std::optional<model::Run>();
    PERFRIG_TRY(const Rows block,
                c.exec("select b.id, b.state, (select machine_id from lease where block_id = b.id) from block b "
                       "where b.id = (select block_id from run where id = $1) for no key update of b",
                       {run}));
    const bool in_hand = !block.is_null(0, 2);
    PERFRIG_CHECK(c.exec(("insert into run (block_id, cell_id, submission_id, machine_id, position, replicate, "
                          "attempt, retry_of, state, "
                          "deadline, resolved, resolved_sha) select block_id, cell_id, submission_id, $2, position, "
                          "replicate, attempt + 1, "
                          "id, case when $2::bigint is null then 'planned' else 'assigned' end, case when $2::bigint "
                          "is not null then now() "
                          "+ " +
                          interval_ms("$3") +
                          " end, resolved, resolved_sha from run where id = $1 and state = 'interrupted' "
                          "and attempt < $4 on conflict (cell_id, replicate, attempt) do nothing")
                             .c_str(),
                         {run, Param::id_or_null(block.id(0, 2)), std::int64_t(start_within.count()), most_attempts}));
    PERFRIG_TRY(auto next, select(c, true, "where r.retry_of = $1", {run}));
    if (next.empty()) return std::optional<model::Run>();
    PERFRIG_CHECK(ensure_partitions(c, next.front().id, next.front().id));
    if (!in_hand) // its block waits again, whatever had become of it
        PERFRIG_CHECK(c.exec("update block set state = 'pending', reason = 'a run is tried again' where id = $1 "
                             "and state in ('done', 'refused')",
                             {block.integer(0, 0)}));
    PERFRIG_CHECK(transaction.commit());
    return std::optional(std::move(next.front()));
}

Result<std::vector<model::Id>> retryable(Connection& c, int limit) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select r.id from submission s join run r on r.submission_id = s.id where s.state in ('queued', "
                       "'running') and not s.cancel_requested and r.state = 'interrupted' and r.attempt < $2 and not "
                       "exists (select from run n where n.cell_id = r.cell_id and n.replicate = r.replicate "
                       "and n.attempt = r.attempt + 1) and not exists (select from lease l "
                       "where l.block_id = r.block_id) order by r.id limit $1",
                       {limit, most_attempts}));
    std::vector<model::Id> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(rows.integer(i, 0));
    return out;
}

Result<std::vector<model::Run>> overdue_runs(Connection& c, int limit, model::Id block) {
    return select(c, false,
                  std::string("where r.state in ") + open_states +
                      " and r.deadline < now() and ($2 = 0::bigint or r.block_id = $2) order by r.deadline limit $1",
                  {limit, block});
}

} // namespace perfrig::db::queue
