#include "controller/api/json_views.hpp"

#include "common/base/clock.hpp"

#include <algorithm>

namespace perfrig::api {

namespace {

std::string name_of(const std::map<model::Id, std::string>& machines, model::Id machine) {
    const auto at = machines.find(machine);
    return at == machines.end() ? "" : at->second;
}

} // namespace

Json time_json(std::int64_t utc_ns) { return to_rfc3339(utc_ns); }
Json time_json(const std::optional<std::int64_t>& utc_ns) { return utc_ns ? Json(to_rfc3339(*utc_ns)) : Json(); }
Json id_or_null(model::Id id) { return id == 0 ? Json() : Json(id); }
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json to_json(const model::Run& run) {
    return {{"id", run.id},
            {"submission", run.submission_id},
            {"experiment", run.experiment},
            {"block", run.block_id},
            {"cell_key", cell_key(run.levels)},
            {"levels", run.levels},
            {"position", run.position},
            {"replicate", run.replicate},
            {"attempt", run.attempt},
            {"retry_of", id_or_null(run.retry_of)},
            {"state", model::to_string(run.state)},
            {"reason", run.reason},
            {"verdict", model::to_string(run.verdict)},
            {"machine", text_or_null(run.machine_name)},
            {"deadline", time_json(run.deadline_utc_ns)},
            {"started_at", time_json(run.started_utc_ns)},
            {"ended_at", time_json(run.ended_utc_ns)}};
}

Json to_json(const model::Metric& metric) {
    return {{"name", metric.name},
            {"labels", metric.labels},
            {"unit", metric.unit},
            {"value", or_null(metric.value)},
            {"window_start_ns", or_null(metric.window_start_ns)},
            {"window_end_ns", or_null(metric.window_end_ns)},
            {"source", metric.source},
            {"status", metric.status}};
}

Json to_json(const model::SeriesInfo& series, const std::map<model::Id, std::string>& machines) {
    return {{"id", series.id},         {"machine", name_of(machines, series.machine_id)},
            {"name", series.name},     {"unit", series.unit},
            {"labels", series.labels}, {"kind", series.counter ? "counter" : "gauge"}};
}

Json to_json(const model::Finding& finding, const std::map<model::Id, std::string>& machines) {
    return {{"check", finding.check_name},
            {"version", finding.version},
            {"severity", model::to_string(finding.severity)},
            {"subject", finding.subject},
            {"message", finding.message},
            {"machine", text_or_null(name_of(machines, finding.machine_id))},
            {"evidence", finding.evidence}};
}

Json to_json(const model::Artifact& artifact, const std::map<model::Id, std::string>& machines) {
    return {{"id", artifact.id},
            {"machine", name_of(machines, artifact.machine_id)},
            {"name", artifact.name},
            {"sha256", artifact.sha256},
            {"size_bytes", artifact.size_bytes},
            {"stored_bytes", artifact.stored_bytes},
            {"complete", artifact.complete}};
}

Json to_json(const model::Phase& phase, const std::map<model::Id, std::string>& machines) {
    const auto utc = [&](std::int64_t ns) { return time_json(phase.utc_anchor_ns + (ns - phase.anchor_ns)); };
    return {{"machine", name_of(machines, phase.machine_id)},
            {"ordinal", phase.ordinal},
            {"name", phase.name},
            {"start_ns", phase.start_ns},
            {"end_ns", or_null(phase.end_ns)},
            {"start_utc", utc(phase.start_ns)},
            {"end_utc", phase.end_ns ? utc(*phase.end_ns) : Json()},
            {"anchor_error_ns", phase.anchor_error_ns}};
}

Json to_json(const model::Process& process, const std::map<model::Id, std::string>& machines) {
    return {{"machine", name_of(machines, process.machine_id)},
            {"ordinal", process.ordinal},
            {"role", process.role},
            {"name", process.name},
            {"phase", process.phase},
            {"pid", process.pid},
            {"granted_cpus", process.granted_cpus},
            {"observed_cpus", process.observed_cpus},
            {"observed_nodes", process.observed_nodes},
            {"speculation", process.speculation},
            {"cgroup", process.cgroup},
            {"started_ns", process.started_ns},
            {"ended_ns", or_null(process.ended_ns)},
            {"exit", process.exit}};
}

Json to_json(const model::Token& token) {
    return {{"hash", token.hash},
            {"kind", model::to_string(token.kind)},
            {"label", token.label},
            {"machine", text_or_null(token.machine_name)},
            {"created_at", time_json(token.created_utc_ns)},
            {"revoked_at", time_json(token.revoked_utc_ns)}};
}

Json to_json(const model::Event& event) {
    return {{"id", event.id},       {"at", time_json(event.at_utc_ns)},
            {"actor", event.actor}, {"subject", event.subject},
            {"what", event.what},   {"detail", event.detail}};
}

Json to_json(const model::Machine& machine) {
    return {{"name", machine.name},
            {"labels", machine.labels},
            {"state", model::to_string(machine.state)},
            {"state_reason", machine.state_reason},
            {"boot_id", machine.boot_id},
            {"agent_epoch", machine.agent_epoch},
            {"agent_version", machine.agent_version},
            {"metrics_url", machine.metrics_url},
            {"clock_offset_ns", or_null(machine.clock_offset_ns)},
            {"clock_offset_error_ns", or_null(machine.clock_offset_error_ns)},
            {"last_seen", time_json(machine.last_seen_utc_ns)}};
}

Json to_json(const analysis::ResultsTable& table) {
    Json columns = Json::array(), rows = Json::array();
    for (const auto& column : table.columns)
        columns.push_back({{"key", column.key},
                           {"title", column.title},
                           {"unit", column.unit},
                           {"metric", column.metric},
                           {"labels", column.labels},
                           {"main", column.main},
                           {"source", column.source}});
    for (const auto& row : table.rows) {
        Json replicates = Json::array(), values = Json::object();
        for (const auto& one : row.replicates)
            replicates.push_back({{"run", one.run},
                                  {"replicate", one.replicate},
                                  {"attempt", one.attempt},
                                  {"state", model::to_string(one.state)},
                                  {"verdict", model::to_string(one.verdict)},
                                  {"reason", one.reason},
                                  {"findings", one.findings}});
        for (const auto& [key, summary] : row.values) {
            Json list = Json::array();
            for (const auto& value : summary.values)
                list.push_back({{"run", value.run}, {"replicate", value.replicate}, {"value", value.value}});
            values[key] = {{"median", or_null(summary.median)}, {"values", list}};
        }
        rows.push_back({{"cell_key", row.cell.cell_key},
                        {"levels", row.cell.levels},
                        {"n", row.n},
                        {"voided", row.voided},
                        {"failed", row.failed},
                        {"refused", row.refused},
                        {"open", row.open},
                        {"replicates", replicates},
                        {"values", values}});
    }
    Json findings = Json::array();
    for (const auto& group : table.findings) {
        Json in = Json::array();
        for (const auto& one : group.in) in.push_back({{"run", one.run}, {"message", one.message}});
        findings.push_back({{"check", group.check},
                            {"severity", model::to_string(group.severity)},
                            {"subject", group.subject},
                            {"kind", group.kind},
                            {"in", in}});
    }
    return {{"columns", columns},
            {"rows", rows},
            {"findings", findings},
            {"finding_groups_left_out", table.groups_left_out}};
}

Json to_json(const model::Submission& submission) {
    const auto planned = [&](const char* key) {
        return submission.plan.is_object() ? submission.plan.value(key, Json()) : Json();
    };
    return {{"id", submission.id},
            {"experiment", submission.experiment},
            {"state", model::to_string(submission.state)},
            {"reason", submission.reason},
            {"priority", submission.priority},
            {"source", submission.source},
            {"seed", submission.seed},
            {"definition_sha", submission.definition_sha},
            {"machine_name", or_null(submission.machine_name)},
            {"machine_labels", submission.machine_labels},
            {"cancel_requested", submission.cancel_requested},
            {"created_at", time_json(submission.created_utc_ns)},
            {"ended_at", time_json(submission.ended_utc_ns)},
            {"cell_count", planned("cell_count")},
            {"run_count", planned("run_count")},
            {"factors", planned("factors")},
            {"expected_seconds", planned("expected_seconds")},
            {"expected_is_lower_bound", planned("expected_is_lower_bound")}};
}

Json to_json(const queue::Waiting& waiting) {
    Json machines = Json::array();
    for (const auto& one : waiting.machines)
        machines.push_back({{"machine", one.machine}, {"why", one.why}, {"text", one.text}});
    return {{"text", waiting.text}, {"blocks_ahead", waiting.blocks_ahead}, {"machines", machines}};
}

Json to_json(const model::Submission& submission, const SubmissionParts& parts, std::int64_t now_utc_ns) {
    Json json = to_json(submission);
    Json by_state = Json::object(), by_verdict = Json::object(), blocks = Json::array(), current_runs = Json::array();
    for (const auto& [state, count] : parts.counts.by_state) by_state[model::to_string(state)] = count;
    for (const auto& [verdict, count] : parts.counts.by_verdict) by_verdict[model::to_string(verdict)] = count;
    for (const auto& run : parts.current_runs) current_runs.push_back(to_json(run));
    for (const auto& block : parts.blocks)
        blocks.push_back({{"id", block.id},
                          {"ordinal", block.ordinal},
                          {"state", model::to_string(block.state)},
                          {"reason", block.reason},
                          {"machine", text_or_null(block.machine_name)}});
    const auto total = parts.counts.total();
    json["run_count"] = total;
    json["run_counts"] = by_state;
    json["verdict_counts"] = by_verdict;
    json["blocks"] = blocks;
    json["current_runs"] = current_runs;
    json["waiting"] = parts.waiting ? to_json(*parts.waiting) : Json();
    json["expected_end"] = nullptr;
    const auto& whole = json["expected_seconds"];
    if (submission.state == model::SubmissionState::running && whole.is_number() && total > 0 && !parts.waiting) {
        const double left =
            whole.get<double>() * static_cast<double>(total - parts.counts.ended()) / static_cast<double>(total);
        json["expected_end"] = time_json(now_utc_ns + static_cast<std::int64_t>(left * 1e9));
    }
    return json;
}

} // namespace perfrig::api
