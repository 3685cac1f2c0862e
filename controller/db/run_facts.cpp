#include "controller/db/run_facts.hpp"

#include "controller/db/sql.hpp"
#include "controller/db/transaction.hpp"

namespace perfrig::db::facts {

Result<void> put_roles(Connection& c, model::Id run, model::Id machine,
                       const std::map<std::string, std::string>& roles) {
    PERFRIG_CHECK(c.exec("insert into run_machine (run_id, machine_id, roles) values ($1, $2, $3::jsonb) "
                         "on conflict (run_id, machine_id) do update set roles = excluded.roles",
                         {run, machine, to_json(roles)}));
    return {};
}

Result<void> put_environment(Connection& c, model::Id run, model::Id machine, const protocol::EnvironmentTaken& taken) {
    if (taken.when != "before" && taken.when != "after")
        return fail(ErrorKind::bad_input, "store an environment", "'" + taken.when + "'",
                    "it is neither before nor after");
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(
        const Rows stored,
        c.exec("insert into environment (machine_id, boot_id, taken_at, fingerprint, facts, raw) "
               "values ($1, $2, now(), $3, $4::jsonb, $5::jsonb) on conflict (machine_id, boot_id, fingerprint) "
               "do update set fingerprint = excluded.fingerprint returning id",
               {machine, taken.boot_id, taken.fingerprint, taken.facts, taken.raw}));
    const std::string column = "environment_" + taken.when;
    const std::string sql = "insert into run_machine (run_id, machine_id, roles, " + column +
                            ") values ($1, $2, '{}', $3) on conflict (run_id, machine_id) do update set " + column +
                            " = excluded." + column;
    PERFRIG_CHECK(c.exec(sql.c_str(), {run, machine, stored.integer(0, 0)}));
    return transaction.commit();
}

Result<void> start_phase(Connection& c, model::Id run, const model::Phase& phase) {
    PERFRIG_CHECK(c.exec("insert into phase (run_id, machine_id, ordinal, name, start_ns, end_ns, utc_anchor_ns, "
                         "anchor_ns, anchor_error_ns) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) "
                         "on conflict (run_id, machine_id, ordinal) do nothing",
                         {run, phase.machine_id, phase.ordinal, phase.name, phase.start_ns, phase.end_ns,
                          phase.utc_anchor_ns, phase.anchor_ns, phase.anchor_error_ns}));
    return {};
}

namespace {
Result<void> one_row(const Rows& done, const char* what, model::Id run, int ordinal) {
    if (done.affected() == 1) return {};
    return fail(ErrorKind::bad_input, what, "number " + std::to_string(ordinal) + " of run " + std::to_string(run),
                "it never started");
}
} // namespace

Result<void> end_phase(Connection& c, model::Id run, model::Id machine, int ordinal, std::int64_t end_ns) {
    PERFRIG_TRY(const Rows done, c.exec("update phase set end_ns = $4 where run_id = $1 and machine_id = $2 "
                                        "and ordinal = $3",
                                        {run, machine, ordinal, end_ns}));
    return one_row(done, "end the phase", run, ordinal);
}

Result<void> put_series(Connection& c, model::Id run, std::span<const model::SeriesInfo> series) {
    std::vector<std::int64_t> machines;
    std::vector<int> ids;
    std::vector<std::string> names, units, kinds, labels;
    for (const model::SeriesInfo& one : series) {
        machines.push_back(one.machine_id);
        ids.push_back(one.id);
        names.push_back(one.name);
        units.push_back(one.unit);
        kinds.emplace_back(one.counter ? "counter" : "gauge");
        labels.push_back(canonical_json(to_json(one.labels)));
    }
    PERFRIG_CHECK(
        c.exec("insert into series (run_id, machine_id, id, name, unit, kind, labels) "
               "select $1, machine, id, name, unit, kind, labels::jsonb from unnest($2::bigint[], $3::int[], "
               "$4::text[], $5::text[], $6::text[], $7::text[]) as given(machine, id, name, unit, kind, labels) "
               "on conflict (run_id, machine_id, id) do nothing",
               {run, Param::array(machines), Param::array(ids), Param::array(names), Param::array(units),
                Param::array(kinds), Param::array(labels)}));
    return {};
}

Result<void> start_process(Connection& c, model::Id run, const model::Process& p) {
    PERFRIG_CHECK(
        c.exec("insert into process (run_id, machine_id, ordinal, role, name, phase, pid, granted_cpus, "
               "speculation, cgroup, started_ns) values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11) "
               "on conflict (run_id, machine_id, ordinal) do nothing",
               {run, p.machine_id, p.ordinal, p.role, p.name, p.phase, p.pid, p.granted_cpus, p.speculation, p.cgroup,
                p.started_ns}));
    return {};
}

Result<void> observe_process(Connection& c, model::Id run, model::Id machine, int ordinal, std::string_view cpus,
                             std::string_view nodes) {
    PERFRIG_TRY(const Rows done, c.exec("update process set observed_cpus = $4, observed_nodes = $5 where run_id = $1 "
                                        "and machine_id = $2 and ordinal = $3",
                                        {run, machine, ordinal, cpus, nodes}));
    return one_row(done, "store where a process ran", run, ordinal);
}

Result<void> end_process(Connection& c, model::Id run, model::Id machine, int ordinal, std::int64_t ended_ns,
                         std::string_view exit) {
    PERFRIG_TRY(const Rows done, c.exec("update process set ended_ns = $4, exit = $5 where run_id = $1 "
                                        "and machine_id = $2 and ordinal = $3",
                                        {run, machine, ordinal, ended_ns, exit}));
    return one_row(done, "end the process", run, ordinal);
}

Result<void> put_metrics(Connection& c, model::Id run, std::span<const model::Metric> metrics) {
    // One statement may not meet the same key twice: the last one given stands.
    std::map<std::pair<std::string, std::string>, const model::Metric*> by_key;
    for (const model::Metric& one : metrics) by_key[{one.name, labels_hash(one.labels)}] = &one;
    std::vector<std::string> names, hashes, labels, units, sources, statuses;
    std::vector<std::optional<double>> values;
    std::vector<std::optional<std::int64_t>> starts, ends;
    for (const auto& [key, one] : by_key) {
        names.push_back(key.first);
        hashes.push_back(key.second);
        labels.push_back(canonical_json(to_json(one->labels)));
        units.push_back(one->unit);
        values.push_back(one->value);
        starts.push_back(one->window_start_ns);
        ends.push_back(one->window_end_ns);
        sources.push_back(one->source);
        statuses.push_back(one->status);
    }
    PERFRIG_CHECK(c.exec(
        "insert into metric (run_id, name, labels_hash, labels, unit, value, window_start_ns, window_end_ns, source, "
        "status) select $1, name, hash, labels::jsonb, unit, value, starts, ends, source, status from "
        "unnest($2::text[], "
        "$3::text[], $4::text[], $5::text[], $6::double precision[], $7::bigint[], $8::bigint[], $9::text[], "
        "$10::text[]) "
        "as given(name, hash, labels, unit, value, starts, ends, source, status) on conflict (run_id, name, "
        "labels_hash) "
        "do update set unit = excluded.unit, value = excluded.value, window_start_ns = excluded.window_start_ns, "
        "window_end_ns = excluded.window_end_ns, source = excluded.source, status = excluded.status",
        {run, Param::array(names), Param::array(hashes), Param::array(labels), Param::array(units),
         Param::array(values), Param::array(starts), Param::array(ends), Param::array(sources),
         Param::array(statuses)}));
    return {};
}

Result<void> add_findings(Connection& c, std::span<const model::Finding> findings) {
    for (const model::Finding& one : findings)
        PERFRIG_CHECK(
            c.exec("insert into finding (run_id, block_id, machine_id, check_name, version, severity, subject, "
                   "message, evidence, source) values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10)",
                   {Param::id_or_null(one.run_id), Param::id_or_null(one.block_id), Param::id_or_null(one.machine_id),
                    one.check_name, one.version, to_string(one.severity), one.subject, one.message, one.evidence,
                    one.source}));
    return {};
}

Result<void> clear_evaluation(Connection& c, model::Id run) {
    PERFRIG_CHECK(c.exec("delete from metric where run_id = $1 and source = 'derived'", {run}));
    PERFRIG_CHECK(c.exec("delete from finding where run_id = $1 and source = 'analysis'", {run}));
    return {};
}

} // namespace perfrig::db::facts
