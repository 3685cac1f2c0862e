// The results document (schemas/openapi.yaml, Results) read for rendering. What its parts share; not for others.
#pragma once

#include "common/base/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perfrig::report {

struct Column {
    std::string key;   // in the document
    std::string title; // for people
    std::string unit;  // SI
    bool is_factor = false;
    bool main = true;
    bool from_tool = false; // reported by the tool itself, and no latency: what replicates should agree in
};
std::vector<Column> columns_of(const Json& results); // factors first

struct Values {
    double median = 0;
    std::vector<double> of_runs; // may be empty
    double least() const;
    double most() const;
};
std::optional<Values> values_of(const Json& row, const std::string& key);

std::string level_of(const Json& row, const std::string& factor);
std::string levels_text(const Json& levels); // "connections=5 size=1k"; "" where there are none

// What became of the cell's runs, and the first reason why one gave no number.
std::string outcome_of(const Json& row);
int findings_of(const Json& row); // above info, over its replicates

// One kind of finding, and the runs that had it.
struct Found {
    std::string severity, check, message; // the first run's message
    std::string where;                    // "every run", "3 runs: connections=1 #1 #2, connections=5 #1"
    bool same = true;                     // in all of these runs
};
constexpr std::size_t most_kinds_shown = 20;
struct FoundAll {
    std::vector<Found> kinds; // warnings and worse, gravest first
    std::size_t left_out = 0, remarks = 0;
};
FoundAll found_in(const Json& results);
// By run: "warning cpu_other: ...", a line each.
std::map<std::int64_t, std::string> found_by_run(const Json& results);

} // namespace perfrig::report
