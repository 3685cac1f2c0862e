// The results of a submission: one row a cell, over its replicates. Of each replicate the last attempt counts. Void,
// failed, refused and unfinished runs are shown and counted, and enter no median.
#pragma once

#include "controller/model/run.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace perfrig::analysis {

struct Column {
    std::string key;   // "requests_per_second", "cpu_busy_ratio{mode=user,role=app}": name and sorted labels
    std::string title; // for people: "requests/s", "app user"; the key where it isn't a main column
    std::string unit;
    std::string metric; // its name
    model::Labels labels;
    bool main = false;  // one of those a person wants to see first; main columns come first
    std::string source; // tool, derived or collector
};

struct Value {
    model::Id run = 0;
    int replicate = 1;
    double value = 0;
};

struct Summary {
    std::optional<double> median; // none: no value
    std::vector<Value> values;    // by replicate
};

// What became of one replicate.
struct Replicate {
    model::Id run = 0; // the last attempt
    int replicate = 1;
    int attempt = 1;
    model::RunState state = model::RunState::planned;
    model::Verdict verdict = model::Verdict::unreviewed;
    std::string reason;
    int findings = 0; // above info
};

struct Row {
    model::Cell cell;
    int n = 0;                                         // runs that the numbers rest on
    int voided = 0, failed = 0, refused = 0, open = 0; // failed: failed, interrupted or cancelled
    std::vector<Replicate> replicates;
    std::map<std::string, Summary> values; // by the column's key
};

// What a check found in several runs, once. Alike are findings of one check, severity and subject whose messages differ
// in nothing but numbers.
struct FindingGroup {
    std::string check, subject;
    std::string kind; // the message without its numbers
    model::Severity severity = model::Severity::info;
    struct In {
        model::Id run = 0;
        std::string message;
    };
    std::vector<In> in; // not empty; by cell and replicate, of each replicate's last attempt
};

struct ResultsTable {
    std::vector<Column> columns;
    std::vector<Row> rows;              // by the cell's ordinal
    std::vector<FindingGroup> findings; // gravest first
    int groups_left_out = 0;            // beyond most_finding_groups
};
constexpr std::size_t most_finding_groups = 100;

struct RunResult {
    model::Run run;
    std::vector<model::Metric> metrics;
    std::vector<model::Finding> findings;
};

// Units are SI. Main columns: requests or transactions per second, latency p50 and p99 (the mean of tools that have no
// quantiles), operation time, busy per role (the load's as one figure), switches per request and run-queue wait of
// services, service demand; and of a tool that reports none of these (any program may be one), all that it reports
// without labels. The share of CPU time that others used is one where a cell has more than the finding's limit.
// `tools`: names of processes that load or measure, next to which services are what one looks at.
ResultsTable summarise(const std::vector<model::Cell>& cells, const std::vector<RunResult>& runs,
                       const std::set<std::string>& tools = {});

std::string column_key(std::string_view metric, const model::Labels& labels);

} // namespace perfrig::analysis
