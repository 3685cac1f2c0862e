#include "controller/report/results.hpp"

#include "controller/report/text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

namespace perfrig::report {

namespace {

struct Column {
    std::string key;   // in the document
    std::string title; // for people
    std::string unit;  // SI
    bool is_factor = false;
    bool main = true;
};

std::vector<Column> columns_of(const Json& results) {
    std::vector<Column> out;
    for (const Json& factor : results.value("factors", Json::array()))
        out.push_back({factor.get<std::string>(), factor.get<std::string>(), "", true, true});
    for (const Json& column : results.value("columns", Json::array()))
        out.push_back({column.value("key", ""), column.value("title", ""), column.value("unit", ""), false,
                       column.value("main", false)});
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

std::optional<double> value_of(const Json& row, const std::string& key) {
    const auto values = row.find("values");
    if (values == row.end()) return std::nullopt;
    const auto value = values->find(key);
    if (value == values->end() || !value->is_object()) return std::nullopt;
    const auto median = value->find("median");
    if (median == value->end() || !median->is_number()) return std::nullopt;
    return median->get<double>();
}

std::string cell_text(const Json& row, const Column& column) {
    if (column.is_factor) return row.at("levels").value(column.key, "");
    const std::optional<double> value = value_of(row, column.key);
    return value ? readable_number(*value, column.unit) : "-";
}

bool shown(const Json& results, const Column& column) {
    if (column.is_factor) return true;
    if (!column.main) return false;
    for (const Json& row : results["rows"])
        if (value_of(row, column.key)) return true;
    return false;
}

struct Rows {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> lines;
    std::vector<bool> bad; // a line that holds no good run
};

// For people: the main columns that have a value somewhere, medians in readable units.
Rows rows_of(const Json& results) {
    Rows out;
    std::vector<Column> columns = columns_of(results);
    std::erase_if(columns, [&](const Column& c) { return !shown(results, c); });
    for (const Column& column : columns) {
        const std::string unit = readable_unit(column.unit);
        out.header.push_back(unit.empty() || unit == "count" || unit == "1/s" ? column.title
                                                                              : column.title + " [" + unit + "]");
    }
    out.header.push_back("n");
    out.header.push_back("");
    for (const Json& row : results["rows"]) {
        std::vector<std::string> line;
        for (const Column& column : columns) line.push_back(cell_text(row, column));
        line.push_back(std::to_string(row.value("n", 0)));
        line.push_back(outcome_of(row));
        out.lines.push_back(std::move(line));
        out.bad.push_back(row.value("n", 0) == 0);
    }
    return out;
}

// Where a cell's replicates differ by more than a tenth of their median in the first of what was measured: a line
// below the table for each, since the median alone would hide it.
std::string spread_notes(const Json& results) {
    constexpr double worth_saying = 0.1;
    std::vector<Column> columns = columns_of(results);
    std::erase_if(columns, [&](const Column& c) { return c.is_factor || !shown(results, c); });
    if (columns.empty()) return {};
    const Column& first = columns.front();
    std::string out;
    for (const Json& row : results["rows"]) {
        const std::optional<double> median = value_of(row, first.key);
        if (!median || *median == 0) continue;
        std::vector<double> values;
        for (const Json& one : row["values"][first.key].value("values", Json::array()))
            values.push_back(one.value("value", *median));
        if (values.size() < 2) continue;
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        if (*most - *least <= worth_saying * std::fabs(*median)) continue;
        std::string cell;
        for (const auto& [factor, level] : row.at("levels").items())
            cell += (cell.empty() ? "" : " ") + factor + "=" +
                    (level.is_string() ? level.get<std::string>() : level.dump());
        out += (cell.empty() ? "" : cell + ": ") + first.title + " from " + readable_number(*least, first.unit) +
               " to " + readable_number(*most, first.unit) + " over " + std::to_string(values.size()) +
               " replicates: the median hides that\n";
    }
    return out;
}

} // namespace

std::string results_as_table(const Json& results, bool colours) {
    const Rows rows = rows_of(results);
    return aligned(rows.header, rows.lines, [&](std::size_t i) { return colours && rows.bad[i] ? "\x1b[31m" : ""; }) +
           spread_notes(results);
}

std::string results_as_markdown(const Json& results) {
    const Rows rows = rows_of(results);
    const auto line = [](const std::vector<std::string>& cells) {
        std::string out = "|";
        for (std::string cell : cells) {
            for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
                cell.replace(at, 1, "\\|");
            std::replace(cell.begin(), cell.end(), '\n', ' ');
            out += " " + cell + " |";
        }
        return out + "\n";
    };
    std::string out = line(rows.header) + "|";
    for (std::size_t i = 0; i < rows.header.size(); ++i) out += i + 1 == rows.header.size() ? " --- |" : " ---: |";
    out += "\n";
    for (const auto& cells : rows.lines) out += line(cells);
    return out;
}

std::string results_as_csv(const Json& results) {
    const std::vector<Column> columns = columns_of(results);
    std::string out;
    for (const Column& column : columns)
        out += csv_field(column.key + (column.unit.empty() ? "" : " [" + column.unit + "]")) + ",";
    out += "n,outcome\r\n";
    for (const Json& row : results["rows"]) {
        for (const Column& column : columns) {
            if (column.is_factor)
                out += csv_field(row.at("levels").value(column.key, ""));
            else if (const auto value = value_of(row, column.key))
                out += Json(*value).dump();
            out += ",";
        }
        out += std::to_string(row.value("n", 0)) + "," + csv_field(outcome_of(row)) + "\r\n";
    }
    return out;
}

std::string results_as_junit(const Json& results, const Json& runs) {
    const std::string experiment = results.value("experiment", "");
    std::string cases;
    int failures = 0, skipped = 0, total = 0;
    std::set<std::int64_t> tried_again;
    for (const Json& run : runs)
        if (const Json of = run.value("retry_of", Json()); of.is_number()) tried_again.insert(of.get<std::int64_t>());
    for (const Json& run : runs) {
        ++total;
        std::string name;
        for (const auto& [factor, level] : run.at("levels").items())
            name += factor + "=" + (level.is_string() ? level.get<std::string>() : level.dump()) + " ";
        name += "replicate " + std::to_string(run.value("replicate", 1));
        if (const int attempt = run.value("attempt", 1); attempt > 1) name += " attempt " + std::to_string(attempt);
        const std::string state = run.value("state", ""), verdict = run.value("verdict", ""),
                          reason = run.value("reason", "");
        cases += "  <testcase classname=\"" + xml_text(experiment) + "\" name=\"" + xml_text(name) + "\"";
        // An interrupted attempt with another behind it is no loss; the last one is.
        const bool mended = state == "interrupted" && tried_again.contains(run.value("id", std::int64_t{0}));
        if (state == "refused" || state == "cancelled" || mended) {
            ++skipped;
            cases += "><skipped message=\"" + xml_text(state + ": " + reason) + "\"/></testcase>\n";
        } else if (state != "completed" || verdict == "void") {
            ++failures;
            cases += "><failure type=\"" + xml_text(verdict == "void" ? "void" : state) + "\" message=\"" +
                     xml_text(reason.empty() ? "see its findings" : reason) + "\">run " +
                     std::to_string(run.value("id", std::int64_t{0})) + "</failure></testcase>\n";
        } else {
            cases += "/>\n";
        }
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + xml_text(experiment) + "\" tests=\"" +
           std::to_string(total) + "\" failures=\"" + std::to_string(failures) + "\" skipped=\"" +
           std::to_string(skipped) + "\">\n" + cases + "</testsuite>\n";
}

} // namespace perfrig::report
