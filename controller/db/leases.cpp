// The leases of queue.hpp: renewing, falling silent, ending, revoking.
#include "controller/db/events.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/queue.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/transaction.hpp"

namespace perfrig::db::queue {

namespace {

const std::string& lease_columns() {
    static const std::string sql =
        "l.machine_id, l.block_id, l.token, l.state, " + utc_ns("l.renew_by") + ", l.renew_by < now() ";
    return sql;
}

model::Lease lease_from(const Rows& rows, int i) {
    return {rows.integer(i, 0), rows.integer(i, 1), rows.integer(i, 2), word(model::parse_lease_state(rows.text(i, 3))),
            rows.integer(i, 4), rows.boolean(i, 5)};
}

Result<std::vector<model::Lease>> select(Connection& c, const std::string& rest, const Params& params = {}) {
    PERFRIG_TRY(const Rows rows, c.exec(("select " + lease_columns() + rest).c_str(), params));
    std::vector<model::Lease> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(lease_from(rows, i));
    return out;
}

// A lease's machine is locked before the lease, as everywhere.
Result<void> lock_machine(Connection& c, model::Id machine) {
    PERFRIG_CHECK(c.exec("select from machine where id = $1 for no key update", {machine}));
    return {};
}

// Leaves an unreachable machine unreachable, but changes what it returns to.
Result<void> free_machine(Connection& c, model::Id machine) {
    PERFRIG_CHECK(
        c.exec("update machine set previous_state = case when state <> 'unreachable' then previous_state "
               "when previous_state in ('draining', 'held') then 'held' when previous_state in ('leased', 'restoring') "
               "then 'idle' "
               "else previous_state end, state = case state when 'draining' then 'held' when 'leased' then 'idle' "
               "when 'restoring' then 'idle' else state end where id = $1",
               {machine}));
    return {};
}

Result<void> lease_event(Connection& c, model::Id machine, std::string_view actor, const char* what, Json detail) {
    PERFRIG_TRY(const Rows name, c.exec("select name from machine where id = $1", {machine}));
    return events::add(c, actor, "machine/" + std::string(name.text(0, 0)), what, detail);
}

} // namespace

Result<std::optional<model::Lease>> lease_of(Connection& c, model::Id machine) {
    PERFRIG_TRY(auto found, select(c, "from lease l where l.machine_id = $1", {machine}));
    if (found.empty()) return std::optional<model::Lease>();
    return std::optional(found.front());
}

Result<std::vector<model::Lease>> leases(Connection& c) { return select(c, "from lease l order by l.machine_id"); }

Result<bool> renew(Connection& c, model::Id machine, std::int64_t token, Milliseconds lease_for) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(lock_machine(c, machine));
    // A silent lease comes back as what its block says it is.
    static const std::string sql =
        "update lease l set renew_by = now() + " + interval_ms("$3") +
        ", state = case when l.state <> 'silent' then l.state when b.state in ('granted', 'releasing') then b.state "
        "else 'active' end from block b where b.id = l.block_id and l.machine_id = $1 and l.token = $2";
    PERFRIG_TRY(const Rows done, c.exec(sql.c_str(), {machine, token, std::int64_t(lease_for.count())}));
    if (done.affected() == 0) return false;
    PERFRIG_CHECK(c.exec("update machine set state = previous_state, state_reason = '' where id = $1 "
                         "and state = 'unreachable' and previous_state in ('leased', 'draining', 'restoring')",
                         {machine}));
    PERFRIG_CHECK(transaction.commit());
    return true;
}

Result<bool> set_state(Connection& c, model::Id machine, std::int64_t token, model::LeaseState state) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(lock_machine(c, machine));
    PERFRIG_TRY(const Rows done, c.exec("update lease set state = $3 where machine_id = $1 and token = $2 returning "
                                        "block_id",
                                        {machine, token, to_string(state)}));
    if (done.empty()) return false;
    if (state != model::LeaseState::silent)
        PERFRIG_CHECK(c.exec("update block set state = $2 where id = $1", {done.integer(0, 0), to_string(state)}));
    PERFRIG_CHECK(transaction.commit());
    return true;
}

Result<bool> end(Connection& c, model::Id machine, std::int64_t token, model::BlockState block_state,
                 std::string_view reason) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(lock_machine(c, machine));
    PERFRIG_TRY(const Rows done,
                c.exec("delete from lease where machine_id = $1 and token = $2 returning block_id", {machine, token}));
    if (done.empty()) return false;
    PERFRIG_CHECK(c.exec("update block set state = $2, reason = $3 where id = $1",
                         {done.integer(0, 0), to_string(block_state), reason}));
    if (block_state == model::BlockState::pending) // what never began may begin elsewhere
        PERFRIG_CHECK(c.exec("update run set state = 'planned', machine_id = null, deadline = null "
                             "where block_id = $1 and state = 'assigned'",
                             {done.integer(0, 0)}));
    PERFRIG_CHECK(free_machine(c, machine));
    PERFRIG_CHECK(lease_event(c, machine, "controller", "lease_ended",
                              {{"block", done.integer(0, 0)},
                               {"token", token},
                               {"block_state", to_string(block_state)},
                               {"reason", reason}}));
    PERFRIG_CHECK(transaction.commit());
    return true;
}

Result<bool> quarantine(Connection& c, model::Id machine, std::int64_t token, std::string_view reason) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const bool ended, end(c, machine, token, model::BlockState::pending, reason));
    if (!ended) return false;
    constexpr model::MachineState from[] = {model::MachineState::idle};
    PERFRIG_CHECK(machines::change_state(c, machine, from, model::MachineState::quarantined, reason, "agent"));
    PERFRIG_CHECK(transaction.commit());
    return true;
}

Result<std::vector<model::Lease>> mark_silent(Connection& c) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    // The machines first (see lock_machine); those that somebody decides about right now are looked at next time.
    PERFRIG_TRY(const Rows late,
                c.exec("select m.id from machine m join lease l on l.machine_id = m.id where l.renew_by "
                       "< now() and l.state <> 'silent' order by m.id for no key update of m skip locked"));
    std::vector<std::int64_t> machines;
    for (int i = 0; i < late.size(); ++i) machines.push_back(late.integer(i, 0));
    if (machines.empty()) return std::vector<model::Lease>();
    PERFRIG_TRY(const Rows done, c.exec(("update lease l set state = 'silent' where l.machine_id = any ($1) "
                                         "and l.renew_by < now() and l.state <> 'silent' returning " +
                                         lease_columns())
                                            .c_str(),
                                        {Param::array(machines)}));
    std::vector<model::Lease> out;
    for (int i = 0; i < done.size(); ++i) out.push_back(lease_from(done, i));
    for (const model::Lease& lease : out) {
        PERFRIG_CHECK(
            c.exec("update machine set previous_state = state, state = 'unreachable', "
                   "state_reason = 'its lease was not renewed in time' where id = $1 and state <> 'unreachable'",
                   {lease.machine_id}));
        PERFRIG_CHECK(lease_event(c, lease.machine_id, "controller", "lease_silent",
                                  {{"block", lease.block_id}, {"token", lease.token}}));
    }
    PERFRIG_CHECK(transaction.commit());
    return out;
}

Result<std::optional<model::Id>> revoke(Connection& c, model::Id machine, std::string_view reason,
                                        std::string_view actor) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(lock_machine(c, machine));
    PERFRIG_TRY(const Rows lease,
                c.exec("delete from lease where machine_id = $1 returning block_id, token", {machine}));
    if (lease.empty()) return std::optional<model::Id>();
    const model::Id block = lease.integer(0, 0);
    PERFRIG_CHECK(c.exec("select nextval('fencing_token')"));
    // What was assigned may be running there, unseen: it counts as begun.
    PERFRIG_TRY(const Rows open,
                c.exec("select id from run where block_id = $1 and state in ('assigned', 'preparing', 'warming', "
                       "'measuring', 'stopping', 'uploading') order by id",
                       {block}));
    for (int i = 0; i < open.size(); ++i) {
        PERFRIG_CHECK(
            runs::change_state(c, open.integer(i, 0), model::RunState::interrupted, reason, std::nullopt, actor));
        PERFRIG_CHECK(retry(c, open.integer(i, 0), Milliseconds(0)));
    }
    PERFRIG_CHECK(
        c.exec("update block b set reason = $2, state = case when exists (select from run where block_id = b.id "
               "and state = 'planned') then 'pending' else 'done' end where id = $1",
               {block, reason}));
    PERFRIG_CHECK(free_machine(c, machine));
    PERFRIG_CHECK(lease_event(c, machine, actor, "lease_revoked",
                              {{"block", block}, {"token", lease.integer(0, 1)}, {"reason", reason}}));
    PERFRIG_CHECK(transaction.commit());
    return std::optional(block);
}

} // namespace perfrig::db::queue
