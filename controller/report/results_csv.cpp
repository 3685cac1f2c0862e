#include "controller/report/document.hpp"
#include "controller/report/results.hpp"
#include "controller/report/text.hpp"

namespace perfrig::report {

namespace {

std::string unit_text(const Column& column) { return column.unit.empty() ? "" : " [" + column.unit + "]"; }

// A line's fields, quoted where they must be.
class Line {
  public:
    void text(std::string_view field) { add(csv_field(field)); }
    void number(double value) { add(Json(value).dump()); }
    void whole(std::int64_t value) { add(std::to_string(value)); }
    void nothing() { add(""); }
    std::string end() { return std::move(out_) + "\r\n"; }

  private:
    void add(const std::string& field) {
        if (!std::exchange(first_, false)) out_ += ',';
        out_ += field;
    }
    std::string out_;
    bool first_ = true;
};

} // namespace

std::string results_as_csv(const Json& results) {
    const std::vector<Column> columns = columns_of(results);
    Line header;
    for (const Column& column : columns)
        if (column.is_factor) header.text(column.key);
    for (const char* name : {"n", "findings", "outcome"}) header.text(name);
    for (const Column& column : columns) {
        if (column.is_factor) continue;
        for (const char* of : {".median", ".min", ".max"}) header.text(column.key + of + unit_text(column));
        header.text(column.key + ".n");
    }
    std::string out = header.end();
    for (const Json& row : results["rows"]) {
        Line line;
        for (const Column& column : columns)
            if (column.is_factor) line.text(level_of(row, column.key));
        line.whole(row.value("n", 0));
        line.whole(findings_of(row));
        line.text(outcome_of(row));
        for (const Column& column : columns) {
            if (column.is_factor) continue;
            const auto values = values_of(row, column.key);
            for (const double value :
                 values ? std::vector{values->median, values->least(), values->most()} : std::vector<double>{})
                line.number(value);
            for (int i = 0; !values && i < 3; ++i) line.nothing();
            line.whole(values ? static_cast<std::int64_t>(values->of_runs.size()) : 0);
        }
        out += line.end();
    }
    return out;
}

std::string results_as_csv_of_runs(const Json& results) {
    const std::vector<Column> columns = columns_of(results);
    Line header;
    header.text("run");
    for (const Column& column : columns)
        if (column.is_factor) header.text(column.key);
    for (const char* name : {"replicate", "attempt", "state", "verdict", "findings", "reason"}) header.text(name);
    for (const Column& column : columns)
        if (!column.is_factor) header.text(column.key + unit_text(column));
    std::string out = header.end();
    for (const Json& row : results["rows"])
        for (const Json& run : row.value("replicates", Json::array())) {
            const std::int64_t id = run.value("run", std::int64_t{0});
            Line line;
            line.whole(id);
            for (const Column& column : columns)
                if (column.is_factor) line.text(level_of(row, column.key));
            line.whole(run.value("replicate", 1));
            line.whole(run.value("attempt", 1));
            line.text(run.value("state", ""));
            line.text(run.value("verdict", ""));
            line.whole(run.value("findings", 0));
            line.text(run.value("reason", ""));
            for (const Column& column : columns) {
                if (column.is_factor) continue;
                std::optional<double> found;
                if (const auto values = row.at("values").find(column.key); values != row.at("values").end())
                    for (const Json& one : values->value("values", Json::array()))
                        if (one.value("run", std::int64_t{0}) == id && one.value("value", Json()).is_number())
                            found = one["value"].get<double>();
                found ? line.number(*found) : line.nothing();
            }
            out += line.end();
        }
    return out;
}

} // namespace perfrig::report
