#include "controller/report/document.hpp"

#include "common/base/printable.hpp"

#include <algorithm>
#include <set>

namespace perfrig::report {

std::vector<Column> columns_of(const Json& results) {
    std::vector<Column> out;
    for (const Json& factor : results.value("factors", Json::array()))
        out.push_back({factor.get<std::string>(), factor.get<std::string>(), "", true, true});
    for (const Json& column : results.value("columns", Json::array()))
        out.push_back({column.value("key", ""), column.value("title", ""), column.value("unit", ""), false,
                       column.value("main", false),
                       column.value("source", "") == "tool" && column.value("metric", "") != "latency_seconds"});
    return out;
}

double Values::least() const { return of_runs.empty() ? median : *std::min_element(of_runs.begin(), of_runs.end()); }
double Values::most() const { return of_runs.empty() ? median : *std::max_element(of_runs.begin(), of_runs.end()); }

std::optional<Values> values_of(const Json& row, const std::string& key) {
    const auto values = row.find("values");
    if (values == row.end()) return std::nullopt;
    const auto value = values->find(key);
    if (value == values->end() || !value->is_object()) return std::nullopt;
    const auto median = value->find("median");
    if (median == value->end() || !median->is_number()) return std::nullopt;
    Values out{median->get<double>(), {}};
    for (const Json& one : value->value("values", Json::array())) out.of_runs.push_back(one.value("value", out.median));
    return out;
}

std::string level_of(const Json& row, const std::string& factor) { return row.at("levels").value(factor, ""); }

std::string levels_text(const Json& levels) {
    std::string out;
    for (const auto& [factor, level] : levels.items())
        out += (out.empty() ? "" : " ") + factor + "=" + (level.is_string() ? level.get<std::string>() : level.dump());
    return out;
}

// What became of the cell's runs, and the first reason why one gave no number.
std::string outcome_of(const Json& row) {
    const Json runs = row.value("replicates", Json::array());
    // The document counts cancelled runs among the failed: a reader must not take them for faults of what is measured.
    const auto cancelled = static_cast<int>(
        std::count_if(runs.begin(), runs.end(), [](const Json& run) { return run.value("state", "") == "cancelled"; }));
    std::string out;
    const auto say = [&out](int count, const char* what) {
        if (count > 0) out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    };
    say(row.value("voided", 0), "voided");
    say(row.value("failed", 0) - cancelled, "failed");
    say(row.value("refused", 0), "refused");
    say(cancelled, "cancelled");
    say(row.value("open", 0), "open");
    for (const Json& run : runs)
        if (const std::string reason = run.value("reason", ""); !reason.empty()) return out + ": " + reason;
    return out;
}

int findings_of(const Json& row) {
    int out = 0;
    for (const Json& run : row.value("replicates", Json::array())) out += run.value("findings", 0);
    return out;
}

namespace {

struct Place {
    std::string cell; // "" where there is but one
    int replicate = 1;
};
std::map<std::int64_t, Place> places_of(const Json& results) {
    std::map<std::int64_t, Place> out;
    for (const Json& row : results.at("rows"))
        for (const Json& run : row.value("replicates", Json::array()))
            out[run.value("run", std::int64_t{0})] = {levels_text(row.at("levels")), run.value("replicate", 1)};
    return out;
}

// The cells with their replicates, the first few of them.
std::string where_of(const Json& in, const std::map<std::int64_t, Place>& places) {
    constexpr std::size_t most_cells = 6;
    std::vector<std::pair<std::string, std::string>> cells;
    std::set<std::int64_t> runs;
    for (const Json& one : in) {
        const std::int64_t run = one.value("run", std::int64_t{0});
        if (!runs.insert(run).second) continue;
        const auto place = places.find(run);
        const std::string cell = place == places.end() ? "run " + std::to_string(run) : place->second.cell;
        if (cells.empty() || cells.back().first != cell) cells.push_back({cell, ""});
        if (place != places.end()) cells.back().second += " #" + std::to_string(place->second.replicate);
    }
    if (runs.size() == places.size()) return places.size() == 1 ? "the run" : "every run";
    std::string out = std::to_string(runs.size()) + (runs.size() == 1 ? " run: " : " runs: ");
    for (std::size_t i = 0; i < std::min(cells.size(), most_cells); ++i) {
        const auto& [cell, replicates] = cells[i];
        out += (i > 0 ? ", " : "") + (cell.empty() && !replicates.empty() ? replicates.substr(1) : cell + replicates);
    }
    if (cells.size() > most_cells) out += " and " + std::to_string(cells.size() - most_cells) + " cells more";
    return out;
}

std::string one_line(std::string text) {
    constexpr std::size_t most_bytes = 400;
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.size() <= most_bytes) return text;
    return std::string(beginning_of(text, most_bytes)) + " ...";
}

} // namespace

FoundAll found_in(const Json& results) {
    FoundAll out;
    const auto places = places_of(results);
    out.left_out = results.value("finding_groups_left_out", std::size_t{0});
    for (const Json& group : results.value("findings", Json::array())) {
        const Json& in = group.at("in");
        const std::string severity = group.value("severity", "");
        if (severity == "info" || in.empty()) {
            ++out.remarks;
        } else if (out.kinds.size() == most_kinds_shown) {
            ++out.left_out;
        } else {
            const std::string message = in[0].value("message", "");
            const bool same =
                std::all_of(in.begin(), in.end(), [&](const Json& one) { return one.value("message", "") == message; });
            out.kinds.push_back({severity, group.value("check", ""), one_line(message), where_of(in, places), same});
        }
    }
    return out;
}

std::map<std::int64_t, std::string> found_by_run(const Json& results) {
    std::map<std::int64_t, std::string> out;
    for (const Json& group : results.value("findings", Json::array())) {
        const std::string severity = group.value("severity", "");
        if (severity == "info") continue;
        for (const Json& one : group.at("in"))
            out[one.value("run", std::int64_t{0})] +=
                severity + " " + group.value("check", "") + ": " + one_line(one.value("message", "")) + "\n";
    }
    return out;
}

} // namespace perfrig::report
