// Readers of what is known of a run (runs.hpp).
#include "controller/db/runs.hpp"
#include "controller/db/sql.hpp"

namespace perfrig::db::runs {

namespace {

model::Metric metric_from(const Rows& rows, int i, int first) {
    model::Metric out;
    out.name = rows.text(i, first);
    out.labels = string_map(rows.json(i, first + 1));
    out.unit = rows.text(i, first + 2);
    out.value = rows.maybe_real(i, first + 3);
    out.window_start_ns = rows.maybe_integer(i, first + 4);
    out.window_end_ns = rows.maybe_integer(i, first + 5);
    out.source = rows.text(i, first + 6);
    out.status = rows.text(i, first + 7);
    return out;
}

model::Finding finding_from(const Rows& rows, int i) {
    model::Finding out;
    out.id = rows.integer(i, 0);
    out.run_id = rows.id(i, 1);
    out.block_id = rows.id(i, 2);
    out.machine_id = rows.id(i, 3);
    out.check_name = rows.text(i, 4);
    out.version = static_cast<int>(rows.integer(i, 5));
    out.severity = word(model::parse_severity(rows.text(i, 6)));
    out.subject = rows.text(i, 7);
    out.message = rows.text(i, 8);
    out.evidence = rows.json(i, 9);
    out.source = rows.text(i, 10);
    return out;
}

constexpr const char* finding_columns = "select f.id, f.run_id, f.block_id, f.machine_id, f.check_name, f.version, "
                                        "f.severity, f.subject, f.message, f.evidence, f.source from finding f ";

Result<std::vector<model::Finding>> select_findings(Connection& c, const std::string& rest, model::Id id) {
    PERFRIG_TRY(const Rows rows, c.exec((finding_columns + rest).c_str(), {id}));
    std::vector<model::Finding> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(finding_from(rows, i));
    return out;
}

} // namespace

Result<std::vector<model::RunMachine>> machines(Connection& c, model::Id run) {
    PERFRIG_TRY(
        const Rows rows,
        c.exec("select rm.machine_id, m.name, rm.roles, rm.environment_before, rm.environment_after "
               "from run_machine rm join machine m on m.id = rm.machine_id where rm.run_id = $1 order by m.name",
               {run}));
    std::vector<model::RunMachine> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back({rows.integer(i, 0), std::string(rows.text(i, 1)), string_map(rows.json(i, 2)), rows.id(i, 3),
                       rows.id(i, 4)});
    return out;
}

Result<std::vector<model::Phase>> phases(Connection& c, model::Id run) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select machine_id, ordinal, name, start_ns, end_ns, utc_anchor_ns, anchor_ns, anchor_error_ns "
                       "from phase where run_id = $1 order by machine_id, ordinal",
                       {run}));
    std::vector<model::Phase> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back({rows.integer(i, 0), static_cast<int>(rows.integer(i, 1)), std::string(rows.text(i, 2)),
                       rows.integer(i, 3), rows.maybe_integer(i, 4), rows.integer(i, 5), rows.integer(i, 6),
                       rows.integer(i, 7)});
    return out;
}

Result<std::vector<model::Process>> processes(Connection& c, model::Id run) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select machine_id, ordinal, role, name, phase, pid, granted_cpus, observed_cpus, "
                       "observed_nodes, speculation, cgroup, started_ns, ended_ns, exit from process "
                       "where run_id = $1 order by machine_id, ordinal",
                       {run}));
    std::vector<model::Process> out;
    for (int i = 0; i < rows.size(); ++i) {
        model::Process one;
        one.machine_id = rows.integer(i, 0);
        one.ordinal = static_cast<int>(rows.integer(i, 1));
        one.role = rows.text(i, 2);
        one.name = rows.text(i, 3);
        one.phase = rows.text(i, 4);
        one.pid = static_cast<int>(rows.integer(i, 5));
        one.granted_cpus = rows.text(i, 6);
        one.observed_cpus = rows.text(i, 7);
        one.observed_nodes = rows.text(i, 8);
        one.speculation = rows.json(i, 9);
        one.cgroup = rows.text(i, 10);
        one.started_ns = rows.integer(i, 11);
        one.ended_ns = rows.maybe_integer(i, 12);
        one.exit = rows.text(i, 13);
        out.push_back(std::move(one));
    }
    return out;
}

Result<std::vector<model::Metric>> metrics(Connection& c, model::Id run) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select name, labels, unit, value, window_start_ns, window_end_ns, source, status from metric "
                       "where run_id = $1 order by name, labels",
                       {run}));
    std::vector<model::Metric> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(metric_from(rows, i, 0));
    return out;
}

Result<std::vector<RunMetric>> metrics_of(Connection& c, const std::vector<model::Id>& runs) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select run_id, name, labels, unit, value, window_start_ns, window_end_ns, source, status "
                       "from metric where run_id = any ($1) order by run_id, name, labels",
                       {Param::array(runs)}));
    std::vector<RunMetric> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back({rows.integer(i, 0), metric_from(rows, i, 1)});
    return out;
}

Result<std::vector<model::Finding>> findings(Connection& c, model::Id run) {
    return select_findings(c, "where f.run_id = $1 order by f.id", run);
}

Result<std::set<std::string>> tools_of(Connection& c, const std::vector<model::Id>& runs) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select distinct name from process where run_id = any ($1) and phase = 'measure'",
                       {Param::array(runs)}));
    std::set<std::string> out;
    for (int i = 0; i < rows.size(); ++i) out.emplace(rows.text(i, 0));
    return out;
}

Result<std::vector<model::Finding>> grave_findings_of(Connection& c, const std::vector<model::Id>& runs) {
    PERFRIG_TRY(
        const Rows rows,
        c.exec("select id, run_id, block_id, machine_id, check_name, version, severity, subject, message, '{}', "
               "source from finding where run_id = any ($1) and severity <> 'info' order by run_id, id",
               {Param::array(runs)}));
    std::vector<model::Finding> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(finding_from(rows, i));
    return out;
}

Result<std::vector<model::SeriesInfo>> series(Connection& c, model::Id run) {
    PERFRIG_TRY(const Rows rows, c.exec("select machine_id, id, name, unit, kind = 'counter', labels from series "
                                        "where run_id = $1 order by machine_id, id",
                                        {run}));
    std::vector<model::SeriesInfo> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back({rows.integer(i, 0), static_cast<int>(rows.integer(i, 1)), std::string(rows.text(i, 2)),
                       std::string(rows.text(i, 3)), rows.boolean(i, 4), string_map(rows.json(i, 5))});
    return out;
}

} // namespace perfrig::db::runs
