#include "controller/db/machines.hpp"

#include "controller/db/events.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/tokens.hpp"
#include "controller/db/transaction.hpp"

namespace perfrig::db::machines {

namespace {

const std::string& columns() {
    static const std::string sql =
        "id, name, labels, profile, state, state_reason, previous_state, boot_id, agent_epoch, agent_version, "
        "metrics_url, clock_offset_ns, clock_offset_error_ns, " +
        utc_ns("last_seen") + ", " + utc_ns("created_at") + ", environment_id, forgotten_at is not null ";
    return sql;
}

model::Machine machine_from(const Rows& rows, int i) {
    model::Machine out;
    out.id = rows.integer(i, 0);
    out.name = rows.text(i, 1);
    out.labels = rows.json(i, 2);
    out.profile = rows.json(i, 3);
    out.state = word(model::parse_machine_state(rows.text(i, 4)));
    out.state_reason = rows.text(i, 5);
    out.previous_state = word(model::parse_machine_state(rows.text(i, 6)));
    out.boot_id = rows.text(i, 7);
    out.agent_epoch = rows.integer(i, 8);
    out.agent_version = rows.text(i, 9);
    out.metrics_url = rows.text(i, 10);
    out.clock_offset_ns = rows.maybe_integer(i, 11);
    out.clock_offset_error_ns = rows.maybe_integer(i, 12);
    out.last_seen_utc_ns = rows.maybe_integer(i, 13);
    out.created_utc_ns = rows.integer(i, 14);
    out.environment_id = rows.id(i, 15);
    out.forgotten = rows.boolean(i, 16);
    return out;
}

Error no_machine(std::string_view what) {
    return fail(ErrorKind::not_found, "find the machine", std::string(what), "no machine of this name has enrolled",
                "see: perfrig machines list");
}

Result<std::vector<model::Machine>> select(Connection& c, const char* rest, const Params& params = {}) {
    const std::string sql = "select " + columns() + "from machine " + rest;
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), params));
    std::vector<model::Machine> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(machine_from(rows, i));
    return out;
}

Result<model::Machine> select_one(Connection& c, const std::string& what, const char* rest, const Params& params) {
    PERFRIG_TRY(auto found, select(c, rest, params));
    if (found.empty()) return no_machine(what);
    return std::move(found.front());
}

} // namespace

Result<model::Machine> enrol(Connection& c, std::string_view name, const Json& labels) {
    PERFRIG_CHECK(c.exec("insert into machine (name, labels) values ($1, $2::jsonb) "
                         "on conflict (name) where forgotten_at is null do nothing",
                         {name, labels}));
    return find(c, name);
}

Result<model::Machine> hello(Connection& c, model::Id machine, const HelloUpdate& update) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    model::Id environment = 0;
    if (update.environment.is_object() && !update.environment.empty()) {
        JsonReader in(update.environment, "the environment");
        const std::string fingerprint = in.string("fingerprint");
        const Json& facts = in.object("facts");
        const Json& raw = in.has("raw") ? in.object("raw") : in.any_or_null("raw");
        PERFRIG_CHECK(in.finish());
        PERFRIG_TRY(
            const Rows stored,
            c.exec("insert into environment (machine_id, boot_id, taken_at, fingerprint, facts, raw) "
                   "values ($1, $2, now(), $3, $4::jsonb, coalesce($5::jsonb, '{}')) "
                   "on conflict (machine_id, boot_id, fingerprint) do update set taken_at = now() returning id",
                   {machine, update.boot_id, fingerprint, facts, raw.is_null() ? Param(std::nullopt) : Param(raw)}));
        environment = stored.integer(0, 0);
    }
    PERFRIG_TRY(const Rows done,
                c.exec("update machine set boot_id = $2, agent_epoch = $3, agent_version = $4, profile = $5::jsonb, "
                       "labels = $6::jsonb, metrics_url = $7, environment_id = coalesce($8, environment_id), "
                       "last_seen = now() where id = $1 and agent_epoch <= $3 and forgotten_at is null",
                       {machine, update.boot_id, update.epoch, update.agent_version, update.profile, update.labels,
                        update.metrics_url, Param::id_or_null(environment)}));
    PERFRIG_TRY(model::Machine out, find_by_id(c, machine));
    if (out.forgotten)
        return fail(ErrorKind::forbidden, "accept the agent of", out.name, "the machine was forgotten",
                    "let it join anew: perfrig-agent join");
    if (done.affected() == 0)
        return fail(ErrorKind::conflict, "accept the agent of", out.name,
                    "its epoch " + std::to_string(update.epoch) + " is behind " + std::to_string(out.agent_epoch) +
                        ", which an agent of this machine has reached",
                    "stop the other agent, or restore its state folder; its copy must not be used twice");
    PERFRIG_CHECK(transaction.commit());
    return out;
}

Result<std::optional<std::int64_t>> claim_starts(Connection& c, model::Id machine, std::span<const Start> starts) {
    std::vector<std::int64_t> epochs;
    std::vector<std::string> ids;
    for (const Start& start : starts) {
        epochs.push_back(start.epoch);
        ids.push_back(start.id);
    }
    PERFRIG_CHECK(c.exec("insert into agent_start (machine_id, epoch, start_id) "
                         "select $1, epoch, id from unnest($2::bigint[], $3::text[]) as s(epoch, id) "
                         "on conflict do nothing",
                         {machine, Param::array(epochs), Param::array(ids)}));
    PERFRIG_TRY(const Rows other,
                c.exec("select a.epoch from agent_start a join unnest($2::bigint[], $3::text[]) as s(epoch, id) "
                       "on a.epoch = s.epoch where a.machine_id = $1 and a.start_id <> s.id order by a.epoch limit 1",
                       {machine, Param::array(epochs), Param::array(ids)}));
    return other.empty() ? std::nullopt : std::optional(other.integer(0, 0));
}

Result<void> seen(Connection& c, model::Id machine, std::optional<std::int64_t> offset_ns,
                  std::optional<std::int64_t> offset_error_ns) {
    PERFRIG_CHECK(c.exec("update machine set last_seen = now(), clock_offset_ns = coalesce($2, clock_offset_ns), "
                         "clock_offset_error_ns = coalesce($3, clock_offset_error_ns) where id = $1",
                         {machine, offset_ns, offset_error_ns}));
    return {};
}

Result<bool> change_state(Connection& c, model::Id machine, std::span<const model::MachineState> from,
                          model::MachineState to, std::string_view reason, std::string_view actor) {
    std::vector<std::string> words;
    for (const model::MachineState state : from) words.emplace_back(to_string(state));
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const Rows done,
                c.exec("with was as (select id, state from machine where id = $1 for no key update) "
                       "update machine m set state = $3, state_reason = $4, "
                       "previous_state = case when $3 = 'unreachable' then was.state else m.previous_state end "
                       "from was where m.id = was.id and was.state <> $3 and (cardinality($2::text[]) = 0 "
                       "or was.state = any ($2)) returning m.name, was.state",
                       {machine, Param::array(words), to_string(to), reason}));
    if (done.empty()) return false;
    PERFRIG_CHECK(events::add(c, actor, "machine/" + std::string(done.text(0, 0)), "state",
                              {{"from", done.text(0, 1)}, {"to", to_string(to)}, {"reason", reason}}));
    PERFRIG_CHECK(transaction.commit());
    return true;
}

Result<model::Machine> hold(Connection& c, std::string_view name, std::string_view reason, std::string_view actor) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const model::Machine before, find(c, name));
    PERFRIG_TRY(
        const Rows done,
        c.exec("update machine set state_reason = $2, state = case state when 'idle' then 'held' "
               "when 'leased' then 'draining' else state end, previous_state = case when state <> 'unreachable' "
               "then previous_state when previous_state = 'leased' then 'draining' "
               "when previous_state = 'idle' then 'held' else previous_state end "
               "where id = $1 and state in ('idle', 'leased', 'held', 'draining', 'unreachable')",
               {before.id, reason}));
    if (done.affected() == 0)
        return fail(ErrorKind::conflict, "hold the machine", std::string(name),
                    "it is " + std::string(to_string(before.state)), "wait until it is idle");
    PERFRIG_CHECK(events::add(c, actor, "machine/" + std::string(name), "hold", {{"reason", reason}}));
    PERFRIG_TRY(model::Machine after, find(c, name));
    PERFRIG_CHECK(transaction.commit());
    return after;
}

Result<model::Machine> release(Connection& c, std::string_view name, std::string_view actor) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const model::Machine before, find(c, name));
    PERFRIG_TRY(const Rows done,
                c.exec("with free as (select case when exists (select from lease where machine_id = $1) then 'leased' "
                       "else 'idle' end as state) update machine m set state_reason = '', "
                       "state = case m.state when 'unreachable' then m.state else free.state end, "
                       "previous_state = case m.state when 'unreachable' then free.state else m.previous_state end "
                       "from free where m.id = $1 and (m.state in ('held', 'draining', 'quarantined') "
                       "or (m.state = 'unreachable' and m.previous_state in ('held', 'draining')))",
                       {before.id}));
    if (done.affected() == 0)
        return fail(ErrorKind::conflict, "release the machine", std::string(name),
                    "it is " + std::string(to_string(before.state)) + ", not held", "see: perfrig machines show");
    PERFRIG_CHECK(events::add(c, actor, "machine/" + std::string(name), "release"));
    PERFRIG_TRY(model::Machine after, find(c, name));
    PERFRIG_CHECK(transaction.commit());
    return after;
}

Result<void> forget(Connection& c, std::string_view name, Milliseconds silent_for, std::string_view actor) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    // Locked, so that a grant or a hello is either seen here or finds it forgotten.
    static const std::string sql =
        "select m.id, l.block_id, (extract(epoch from now() - m.last_seen) * 1000)::bigint, m.last_seen > now() - " +
        interval_ms("$2") +
        " from machine m left join lease l on l.machine_id = m.id "
        "where m.name = $1 and m.forgotten_at is null for no key update of m";
    PERFRIG_TRY(const Rows found, c.exec(sql.c_str(), {name, std::int64_t(silent_for.count())}));
    if (found.empty()) return no_machine(name);
    const auto refuse = [&](std::string why, std::string remedy) {
        return fail(ErrorKind::conflict, "forget the machine", std::string(name), std::move(why), std::move(remedy));
    };
    if (!found.is_null(0, 1))
        return refuse("block " + std::to_string(found.integer(0, 1)) + " has its lease",
                      "wait for its end; where the machine is gone for good: perfrig machines release " +
                          std::string(name));
    if (!found.is_null(0, 3) && found.boolean(0, 3))
        return refuse("its agent was heard " + std::to_string(found.integer(0, 2) / 1000) + " s ago",
                      "stop its agent first, and wait " + std::to_string(silent_for.count() / 1000) + " s");
    const model::Id machine = found.integer(0, 0);
    PERFRIG_CHECK(c.exec("update machine set forgotten_at = now(), state = 'held', state_reason = 'forgotten' "
                         "where id = $1",
                         {machine}));
    PERFRIG_CHECK(tokens::revoke_of_machine(c, machine));
    PERFRIG_CHECK(events::add(c, actor, "machine/" + std::string(name), "forgotten", {{"id", machine}}));
    return transaction.commit();
}

Result<std::vector<model::Machine>> list(Connection& c) {
    return select(c, "where forgotten_at is null order by name");
}

Result<std::map<model::Id, std::string>> names(Connection& c) {
    PERFRIG_TRY(const Rows rows, c.exec("select id, name from machine"));
    std::map<model::Id, std::string> out;
    for (int i = 0; i < rows.size(); ++i) out[rows.integer(i, 0)] = rows.text(i, 1);
    return out;
}

Result<model::Machine> find(Connection& c, std::string_view name) {
    return select_one(c, std::string(name), "where name = $1 and forgotten_at is null", {name});
}

Result<model::Machine> find_by_id(Connection& c, model::Id machine) {
    return select_one(c, "number " + std::to_string(machine), "where id = $1", {machine});
}

Result<model::Environment> environment(Connection& c, model::Id environment) {
    static const std::string sql = "select id, machine_id, boot_id, " + utc_ns("taken_at") +
                                   ", fingerprint, facts, raw from environment where id = $1";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {environment}));
    if (rows.empty())
        return fail(ErrorKind::not_found, "find the environment", std::to_string(environment), "there is none");
    model::Environment out;
    out.id = rows.integer(0, 0);
    out.machine_id = rows.integer(0, 1);
    out.boot_id = rows.text(0, 2);
    out.taken_utc_ns = rows.integer(0, 3);
    out.fingerprint = rows.text(0, 4);
    out.facts = rows.json(0, 5);
    out.raw = rows.json(0, 6);
    return out;
}

Result<std::vector<model::Machine>> unseen_for(Connection& c, Milliseconds time) {
    static const std::string rest = "where forgotten_at is null and state not in ('unreachable', 'enrolling') and "
                                    "(last_seen is null or last_seen < "
                                    "now() - " +
                                    interval_ms("$1") + ") order by name";
    return select(c, rest.c_str(), {std::int64_t(time.count())});
}

} // namespace perfrig::db::machines
