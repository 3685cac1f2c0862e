#include "controller/report/results.hpp"

#include "controller/report/text.hpp"

#include <algorithm>
#include <vector>

namespace perfrig::report {

namespace {

struct Column {
    std::string key;    // in the document
    std::string header; // for people
    bool is_factor = false;
};

std::string label_text(const Json& labels) {
    std::string out;
    if (labels.is_object())
        for (const auto& [name, value] : labels.items()) {
            if (!out.empty()) out += ' ';
            out += value.is_string() ? value.get<std::string>() : value.dump();
        }
    return out;
}

std::vector<Column> columns_of(const Json& results) {
    std::vector<Column> out;
    if (results.contains("factors"))
        for (const Json& factor : results["factors"])
            out.push_back({factor.get<std::string>(), factor.get<std::string>(), true});
    if (results.contains("columns"))
        for (const Json& column : results["columns"]) {
            const std::string labels = label_text(column.value("labels", Json::object()));
            out.push_back({column.at("key").get<std::string>(),
                           column.at("name").get<std::string>() + (labels.empty() ? "" : " " + labels), false});
        }
    return out;
}

std::string unit_of(const Json& results, const std::string& key) {
    for (const Json& column : results["columns"])
        if (column.at("key") == key) return column.value("unit", "");
    return "";
}

// Why a cell has no number: the states of its runs, told once each.
std::string states_of(const Json& row) {
    std::vector<std::string> seen;
    if (row.contains("runs"))
        for (const Json& run : row["runs"]) {
            std::string state = run.value("state", "");
            if (run.value("verdict", "") == "void") state = "void";
            if (std::find(seen.begin(), seen.end(), state) == seen.end()) seen.push_back(state);
        }
    std::string out;
    for (const std::string& state : seen) out += (out.empty() ? "" : ", ") + state;
    return out;
}

std::string reasons_of(const Json& row) {
    if (row.contains("runs"))
        for (const Json& run : row["runs"])
            if (const std::string reason = run.value("reason", ""); !reason.empty()) return reason;
    return "";
}

const Json* value_of(const Json& row, const std::string& key) {
    const auto values = row.find("values");
    if (values == row.end()) return nullptr;
    const auto value = values->find(key);
    return value == values->end() || !value->is_object() || !value->contains("mean") ? nullptr : &*value;
}

// What stands in one place of the table, in the column's unit as people read it.
std::string cell_text(const Json& results, const Json& row, const Column& column) {
    if (column.is_factor) return row.at("levels").value(column.key, "");
    const Json* value = value_of(row, column.key);
    if (!value || !(*value)["mean"].is_number()) return "-";
    return readable_number((*value)["mean"].get<double>(), unit_of(results, column.key));
}

std::string header_text(const Json& results, const Column& column) {
    if (column.is_factor) return column.header;
    const std::string unit = readable_unit(unit_of(results, column.key));
    std::string name = readable_name(column.header);
    return unit.empty() ? name : name + " [" + unit + "]";
}

bool shown(const Json& results, const Column& column) {
    if (column.is_factor) return true;
    for (const Json& row : results["rows"])
        if (value_of(row, column.key)) return true;
    return false;
}

struct Rows {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> lines;
    std::vector<bool> bad; // a line that holds no good run
};

Rows rows_of(const Json& results) {
    Rows out;
    std::vector<Column> columns = columns_of(results);
    std::erase_if(columns, [&](const Column& c) { return !shown(results, c); });
    for (const Column& column : columns) out.header.push_back(header_text(results, column));
    out.header.push_back("n");
    out.header.push_back("runs");
    for (const Json& row : results["rows"]) {
        std::vector<std::string> line;
        for (const Column& column : columns) line.push_back(cell_text(results, row, column));
        const auto good = row.value("replicates", 0);
        line.push_back(std::to_string(good));
        std::string told = states_of(row);
        if (const std::string reason = reasons_of(row); !reason.empty()) told += ": " + reason;
        line.push_back(told);
        out.lines.push_back(std::move(line));
        out.bad.push_back(good == 0);
    }
    return out;
}

} // namespace

std::string results_as_table(const Json& results, bool colours) {
    const Rows rows = rows_of(results);
    return aligned(rows.header, rows.lines, [&](std::size_t i) { return colours && rows.bad[i] ? "\x1b[31m" : ""; });
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
    for (const Column& column : columns) out += csv_field(column.key) + ",";
    out += "replicates,states,reason\r\n";
    for (const Json& row : results["rows"]) {
        for (const Column& column : columns) {
            if (column.is_factor)
                out += csv_field(row.at("levels").value(column.key, ""));
            else if (const Json* value = value_of(row, column.key); value && (*value)["mean"].is_number())
                out += (*value)["mean"].dump();
            out += ",";
        }
        out += std::to_string(row.value("replicates", 0)) + "," + csv_field(states_of(row)) + "," +
               csv_field(reasons_of(row)) + "\r\n";
    }
    return out;
}

std::string results_as_junit(const Json& results, const Json& runs) {
    const std::string experiment = results.value("experiment", "");
    std::string cases;
    int failures = 0, skipped = 0, total = 0;
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
        if (state == "refused" || state == "cancelled" || state == "interrupted") {
            ++skipped;
            cases += "><skipped message=\"" + xml_text(state + ": " + reason) + "\"/></testcase>\n";
        } else if (state != "completed" || verdict == "void") {
            ++failures;
            cases += "><failure type=\"" + xml_text(verdict == "void" ? "void" : state) + "\" message=\"" +
                     xml_text(reason.empty() ? "see its findings" : reason) + "\">run " +
                     std::to_string(run.value("id", 0)) + "</failure></testcase>\n";
        } else {
            cases += "/>\n";
        }
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + xml_text(experiment) + "\" tests=\"" +
           std::to_string(total) + "\" failures=\"" + std::to_string(failures) + "\" skipped=\"" +
           std::to_string(skipped) + "\">\n" + cases + "</testsuite>\n";
}

} // namespace perfrig::report
