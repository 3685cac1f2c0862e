#include "controller/analysis/results_table.hpp"

#include "common/stats/summary.hpp"
#include "controller/analysis/derive.hpp"

#include <algorithm>
#include <set>
#include <span>

namespace perfrig::analysis {

namespace {

std::string get(const model::Labels& labels, const char* key) {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string() : found->second;
}

// Place among the main columns (0: not one of them) and a title. The order is that of reading: how much, how long,
// how busy, how often switched, what it cost.
struct Main {
    int place = 0;
    std::string title;
};
Main main_of(const std::string& name, const model::Labels& labels) {
    const std::string tool = labels.contains("tool") ? " (" + get(labels, "tool") + ")" : "";
    const model::Labels bare = [&] {
        model::Labels out = labels;
        out.erase("tool");
        return out;
    }();
    if (name == "requests_per_second" && bare.empty()) return {1, "requests/s" + tool};
    if (name == "transactions_per_second" && bare.empty()) return {1, "transactions/s" + tool};
    if (name == "operation_seconds" && bare.empty()) return {2, "time/operation" + tool};
    if (name == "latency_seconds" && bare == model::Labels{{"stat", "mean"}}) return {3, "latency mean" + tool};
    if (name == "latency_seconds" && bare == model::Labels{{"quantile", "0.5"}}) return {4, "latency p50" + tool};
    if (name == "latency_seconds" && bare == model::Labels{{"quantile", "0.99"}}) return {5, "latency p99" + tool};
    const std::string role = get(labels, "role"), process = get(labels, "process");
    // The monitor's CPUs carry the observer and, on small machines, others' work: its share is in the full table.
    if (role == "monitor") return {};
    if (name == "cpu_busy_ratio") { // of the load only whether it was at its limit
        const std::string mode = get(labels, "mode");
        if (role == "load" && mode == "total") return {8, "load busy"};
        if (role != "load" && mode == "user") return {6, role + " busy user"};
        if (role != "load" && mode == "system") return {7, role + " busy system"};
    }
    if (name == "cpu_other_ratio" && get(labels, "of") == "capacity" && role != "load")
        return {8, role + " used by others"};
    if (name == "context_switches_per_request") {
        const bool voluntary = get(labels, "kind") == "voluntary";
        return {voluntary ? 9 : 10, process + (voluntary ? " vol. switches/req" : " invol. switches/req")};
    }
    if (name == "run_queue_wait_ratio" && get(labels, "of") == "demand") return {11, process + " run-queue wait"};
    if (name == "service_demand_seconds" && role != "load") return {12, role + " demand/req"};
    return {};
}

bool is_better(const RunResult& one, const RunResult* known) { return !known || one.run.attempt > known->run.attempt; }

void count(Row& row, const model::Run& run) {
    switch (run.state) {
    case model::RunState::completed: (run.verdict == model::Verdict::void_ ? row.voided : row.n) += 1; break;
    case model::RunState::refused: row.refused += 1; break;
    case model::RunState::failed:
    case model::RunState::cancelled:
    case model::RunState::interrupted: row.failed += 1; break;
    default: row.open += 1;
    }
}

void add_values(Row& row, const RunResult& one, std::map<std::string, Column>& columns) {
    for (const model::Metric& metric : one.metrics) {
        if (!metric.value) continue;
        const std::string key = column_key(metric.name, metric.labels);
        const auto [column, added] = columns.try_emplace(key);
        if (added) {
            const Main main = main_of(metric.name, metric.labels);
            column->second = {key,           main.place > 0 ? main.title : key,
                              metric.unit,   metric.name,
                              metric.labels, main.place > 0,
                              metric.source};
        }
        row.values[key].values.push_back({one.run.id, one.run.replicate, *metric.value});
    }
}

Row row_of(const model::Cell& cell, const std::map<int, const RunResult*>& replicates,
           std::map<std::string, Column>& columns) {
    Row row;
    row.cell = cell;
    for (const auto& [replicate, one] : replicates) {
        const auto grave = [](const model::Finding& f) { return f.severity != model::Severity::info; };
        row.replicates.push_back({one->run.id, replicate, one->run.attempt, one->run.state, one->run.verdict,
                                  one->run.reason, static_cast<int>(std::ranges::count_if(one->findings, grave))});
        if (one->run.verdict == model::Verdict::void_ && row.replicates.back().reason.empty()) {
            const auto why = std::ranges::find(one->findings, model::Severity::void_, &model::Finding::severity);
            if (why != one->findings.end()) row.replicates.back().reason = why->message;
        }
        count(row, one->run);
        if (one->run.state == model::RunState::completed && one->run.verdict != model::Verdict::void_)
            add_values(row, *one, columns);
    }
    for (auto& [key, summary] : row.values) {
        std::vector<double> numbers;
        for (const Value& value : summary.values) numbers.push_back(value.value);
        summary.median = median(numbers);
    }
    return row;
}

// Mean latencies stand in for quantiles; and of processes services are looked at, not the tools that load them, where
// there are services.
void hide_second_best(std::map<std::string, Column>& columns, const std::set<std::string>& tools) {
    bool services = false;
    for (const auto& [key, column] : columns)
        services |= column.main && column.labels.contains("process") && !tools.contains(get(column.labels, "process"));
    for (auto& [key, column] : columns) {
        if (services && tools.contains(get(column.labels, "process"))) column.main = false;
        if (column.metric != "latency_seconds" || get(column.labels, "stat") != "mean") continue;
        model::Labels median = column.labels;
        median.erase("stat");
        median["quantile"] = "0.5";
        if (columns.contains(column_key(column.metric, median))) column.main = false;
    }
    for (auto& [key, column] : columns)
        if (!column.main) column.title = key;
}

void hide_quiet_others(std::map<std::string, Column>& columns, const std::vector<Row>& rows) {
    for (auto& [key, column] : columns) {
        const auto loud = [&](const Row& row) {
            const auto found = row.values.find(column.key);
            return found != row.values.end() && found->second.median.value_or(0) > other_capacity_limit;
        };
        if (column.metric != "cpu_other_ratio" || std::ranges::any_of(rows, loud)) continue;
        column.main = false;
        column.title = key;
    }
}

// A message without its numbers.
std::string shape_of(const std::string& message) {
    const auto digit = [&](std::size_t i) { return i < message.size() && message[i] >= '0' && message[i] <= '9'; };
    std::string out;
    for (std::size_t i = 0; i < message.size(); ++i) {
        if (!digit(i) && !(message[i] == '.' && out.ends_with('#') && digit(i + 1)))
            out += message[i];
        else if (!out.ends_with('#'))
            out += '#';
    }
    return out;
}

void group_findings(ResultsTable& table, const std::map<model::Id, const RunResult*>& runs) {
    using Kind = std::tuple<int, std::string, std::string, std::string>; // gravest first
    std::map<Kind, FindingGroup> groups;
    for (const Row& row : table.rows)
        for (const Replicate& replicate : row.replicates)
            for (const model::Finding& one : runs.at(replicate.run)->findings) {
                FindingGroup& group =
                    groups[{-static_cast<int>(one.severity), one.check_name, one.subject, shape_of(one.message)}];
                if (group.in.empty()) group = {one.check_name, one.subject, shape_of(one.message), one.severity, {}};
                if (group.in.empty() || group.in.back().run != replicate.run || group.in.back().message != one.message)
                    group.in.push_back({replicate.run, one.message});
            }
    for (auto& [kind, group] : groups)
        if (table.findings.size() < most_finding_groups)
            table.findings.push_back(std::move(group));
        else
            ++table.groups_left_out;
}

// A tool that reports nothing of what main_of knows was told what to report by its experiment: that is what its user
// wants to see. Where several tools ran, their label tells them apart.
void show_other_tools(std::map<std::string, Column>& columns) {
    std::set<std::string> known;
    for (const auto& [key, column] : columns)
        if (column.source == "tool" && column.main) known.insert(get(column.labels, "tool"));
    for (auto& [key, column] : columns) {
        const std::string tool = get(column.labels, "tool");
        if (column.source != "tool" || known.contains(tool) || column.labels.size() > (tool.empty() ? 0U : 1U))
            continue;
        column.main = true;
        column.title = column.metric + (tool.empty() ? "" : " (" + tool + ")");
    }
}

} // namespace

std::string column_key(std::string_view metric, const model::Labels& labels) {
    std::string out(metric);
    for (const auto& [key, value] : labels) out += (out.size() == metric.size() ? "{" : ",") + key + "=" + value;
    return labels.empty() ? out : out + "}";
}

ResultsTable summarise(const std::vector<model::Cell>& cells, const std::vector<RunResult>& runs,
                       const std::set<std::string>& tools) {
    std::map<model::Id, std::map<int, const RunResult*>> by_cell; // the last attempt of each replicate
    for (const RunResult& one : runs) {
        const RunResult*& known = by_cell[one.run.cell_id][one.run.replicate];
        if (is_better(one, known)) known = &one;
    }
    ResultsTable out;
    std::map<std::string, Column> columns;
    std::map<model::Id, const RunResult*> by_run;
    for (const RunResult& one : runs) by_run[one.run.id] = &one;
    for (const model::Cell& cell : cells) out.rows.push_back(row_of(cell, by_cell[cell.id], columns));
    std::ranges::stable_sort(out.rows, {}, [](const Row& row) { return row.cell.ordinal; });
    hide_second_best(columns, tools);
    hide_quiet_others(columns, out.rows);
    show_other_tools(columns);
    group_findings(out, by_run);
    for (auto& [key, column] : columns) out.columns.push_back(std::move(column));
    std::ranges::stable_sort(out.columns, {}, [](const Column& column) {
        const int place = main_of(column.metric, column.labels).place;
        return !column.main ? 1000 : place > 0 ? place : 2; // a tool's own metrics come with the tools' others
    });
    return out;
}

} // namespace perfrig::analysis
