#include "controller/report/results.hpp"

#include "controller/report/document.hpp"
#include "controller/report/text.hpp"

#include <algorithm>
#include <cmath>

namespace perfrig::report {

namespace {

std::vector<Column> columns_shown(const Json& results) {
    std::vector<Column> out = columns_of(results);
    std::erase_if(out, [&](const Column& column) {
        const auto has_value = [&](const Json& row) { return values_of(row, column.key).has_value(); };
        const Json& rows = results.at("rows");
        return !column.is_factor && !(column.main && std::any_of(rows.begin(), rows.end(), has_value));
    });
    return out;
}

struct Rows {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> lines;
    std::vector<bool> bad; // a line that holds no good run
    bool spread = false;   // there is a "±"
};

// A column's texts. `pad`: values stand below each other though what is behind ± differs in width.
std::vector<std::string> column_texts(const Json& rows, const Column& column, const Scale& scale, bool pad) {
    // Of busy ratios and switches the spread would only crowd the table: programs find it in the CSV.
    const bool with_spread = column.unit == "1/s" || column.unit == "s";
    std::vector<std::string> out, spreads;
    std::size_t width = 0;
    for (const Json& row : rows) {
        const auto values = values_of(row, column.key);
        out.push_back(column.is_factor ? level_of(row, column.key)
                      : values         ? readable_number(values->median * scale.factor)
                                       : "-");
        spreads.emplace_back();
        if (!with_spread || !values || values->of_runs.size() < 2) continue;
        const double half = (values->most() - values->least()) / 2 * scale.factor;
        spreads.back() = readable_number(half, decimals_of(values->median * scale.factor));
        width = std::max(width, spreads.back().size());
    }
    for (std::size_t i = 0; width > 0 && i < out.size(); ++i) {
        const std::string& half = spreads[i];
        const std::string room(pad ? width - half.size() : 0, ' ');
        if (!half.empty())
            out[i] += " \xc2\xb1" + room + half;
        else if (pad)
            out[i] += "  " + room;
    }
    for (std::size_t i = 0; i < out.size(); ++i) { // not all of the row's n runs had this value
        const auto values = values_of(rows[i], column.key);
        const std::size_t had = values ? values->of_runs.size() : 0;
        if (had > 0 && had < rows[i].value("n", std::size_t{0})) out[i] += " (n=" + std::to_string(had) + ")";
    }
    return out;
}

// For people: the main columns that have a value somewhere, medians in readable units.
Rows rows_of(const Json& results, bool pad) {
    Rows out;
    const Json& rows = results.at("rows");
    out.lines.resize(rows.size());
    for (const Column& column : columns_shown(results)) {
        std::vector<double> medians;
        for (const Json& row : rows)
            if (const auto values = values_of(row, column.key)) medians.push_back(values->median);
        const Scale scale = scale_of(medians, column.unit);
        const bool told = scale.unit.empty() || scale.unit == "count" || scale.unit == "1/s"; // by the title
        out.header.push_back(told ? column.title : column.title + " [" + scale.unit + "]");
        const auto texts = column_texts(rows, column, scale, pad);
        for (std::size_t i = 0; i < texts.size(); ++i) {
            out.spread |= !column.is_factor && texts[i].find("\xc2\xb1") != std::string::npos;
            out.lines[i].push_back(texts[i]);
        }
    }
    out.header.insert(out.header.end(), {"n", ""});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        out.lines[i].push_back(std::to_string(rows[i].value("n", 0)));
        out.lines[i].push_back(outcome_of(rows[i]));
        out.bad.push_back(rows[i].value("n", 0) == 0);
    }
    return out;
}

// The cells whose replicates differ by more than a tenth of their median in a column, since the median alone would
// hide it; "" where there are none.
std::string wide_spread_of(const Json& results, const Column& column) {
    constexpr double worth_saying = 0.1;
    constexpr std::size_t most_named = 6;
    std::string cells;
    std::size_t count = 0;
    for (const Json& row : results["rows"]) {
        const auto values = values_of(row, column.key);
        if (!values || values->of_runs.size() < 2) continue;
        if (!(values->most() - values->least() > worth_saying * std::fabs(values->median))) continue;
        const std::string cell = levels_text(row.at("levels"));
        if (++count <= most_named && !cell.empty()) cells += (cells.empty() ? "" : ", ") + cell;
    }
    if (count == 0) return {};
    if (count > most_named) cells += " and " + std::to_string(count - most_named) + " cells more";
    return "replicates differ by more than a tenth of the median of " + column.title +
           (cells.empty() ? "" : ": " + cells);
}

std::vector<std::string> wide_spreads(const Json& results) {
    std::vector<std::string> out;
    for (const Column& column : columns_shown(results)) {
        if (!column.from_tool) continue;
        if (std::string said = wide_spread_of(results, column); !said.empty()) out.push_back(std::move(said));
    }
    return out;
}

std::string legend(const Rows& rows) {
    return rows.spread ? "medians of n replicates \xc2\xb1 half of their range" : "";
}

std::string rest_of(const FoundAll& found) {
    std::string out;
    const auto say = [&](std::size_t count, const char* one, const char* more) {
        if (count > 0) out += (out.empty() ? "" : " and ") + std::to_string(count) + " " + (count == 1 ? one : more);
    };
    say(found.left_out, "kind of finding more", "kinds of findings more");
    say(found.remarks, "kind of remark", "kinds of remarks");
    return out.empty() ? out : out + ": see --format json";
}

} // namespace

std::string results_as_table(const Json& results, bool colours) {
    const Rows rows = rows_of(results, true);
    std::string out =
        aligned(rows.header, rows.lines, [&](std::size_t i) { return colours && rows.bad[i] ? "\x1b[31m" : ""; });
    if (rows.spread) out += legend(rows) + "\n";
    for (const std::string& wide : wide_spreads(results)) out += wide + "\n";
    const FoundAll found = found_in(results);
    if (!found.kinds.empty()) out += "\nfindings\n";
    for (const Found& one : found.kinds) {
        const bool grave = colours && one.severity == "void";
        out += "  " + std::string(grave ? "\x1b[31m" : "") + one.severity + (grave ? "\x1b[0m" : "") + "  " +
               one.check + "  " + one.where + "\n      " + (one.same ? "" : "the first: ") + one.message + "\n";
    }
    if (const std::string rest = rest_of(found); !found.kinds.empty() && !rest.empty()) out += "  " + rest + "\n";
    return out;
}

std::string results_as_markdown(const Json& results) {
    const Rows rows = rows_of(results, false);
    const auto escaped = [](std::string text) {
        for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
        std::replace(text.begin(), text.end(), '\n', ' ');
        return text;
    };
    const auto line = [&](const std::vector<std::string>& cells) {
        std::string out = "|";
        for (const std::string& cell : cells) out += " " + escaped(cell) + " |";
        return out + "\n";
    };
    std::string out = line(rows.header) + "|";
    for (std::size_t i = 0; i < rows.header.size(); ++i) out += i + 1 == rows.header.size() ? " --- |" : " ---: |";
    out += "\n";
    for (const auto& cells : rows.lines) out += line(cells);
    std::vector<std::string> notes;
    if (rows.spread) notes.push_back(legend(rows));
    for (std::string& wide : wide_spreads(results)) notes.push_back(std::move(wide));
    const FoundAll found = found_in(results);
    for (const Found& one : found.kinds)
        notes.push_back("**" + one.severity + "** `" + one.check + "`, " + one.where + ": " +
                        (one.same ? "" : "the first: ") + one.message);
    if (const std::string rest = rest_of(found); !found.kinds.empty() && !rest.empty()) notes.push_back(rest);
    if (!notes.empty()) out += "\n";
    for (const std::string& note : notes) out += "* " + escaped(note) + "\n";
    return out;
}

} // namespace perfrig::report
