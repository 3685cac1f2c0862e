#include "controller/analysis/results_table.hpp"

#include "common/stats/summary.hpp"

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
    if (name == "latency_seconds" && bare == model::Labels{{"quantile", "0.99"}}) return {4, "latency p99" + tool};
    // The monitor's CPUs carry the observer and, on small machines, others' work: its share is in the full table.
    if (get(labels, "role") == "monitor") return {};
    if (name == "cpu_busy_ratio" && get(labels, "mode") == "user") return {5, get(labels, "role") + " busy user"};
    if (name == "cpu_busy_ratio" && get(labels, "mode") == "system") return {6, get(labels, "role") + " busy system"};
    if (name == "context_switches_per_request") {
        const bool voluntary = get(labels, "kind") == "voluntary";
        return {voluntary ? 7 : 8,
                get(labels, "process") + (voluntary ? " vol. switches/req" : " invol. switches/req")};
    }
    if (name == "service_demand_seconds" && get(labels, "role") == "app")
        return {9, get(labels, "role") + " demand/req"};
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

ResultsTable summarise(const std::vector<model::Cell>& cells, const std::vector<RunResult>& runs) {
    std::map<model::Id, std::map<int, const RunResult*>> by_cell; // the last attempt of each replicate
    for (const RunResult& one : runs) {
        const RunResult*& known = by_cell[one.run.cell_id][one.run.replicate];
        if (is_better(one, known)) known = &one;
    }
    ResultsTable out;
    std::map<std::string, Column> columns;
    for (const model::Cell& cell : cells) out.rows.push_back(row_of(cell, by_cell[cell.id], columns));
    std::ranges::stable_sort(out.rows, {}, [](const Row& row) { return row.cell.ordinal; });
    show_other_tools(columns);
    for (auto& [key, column] : columns) out.columns.push_back(std::move(column));
    std::ranges::stable_sort(out.columns, {}, [](const Column& column) {
        const int place = main_of(column.metric, column.labels).place;
        return place > 0 ? place : column.main ? 2 : 1000; // a tool's own metrics come with the tools' others
    });
    return out;
}

} // namespace perfrig::analysis
