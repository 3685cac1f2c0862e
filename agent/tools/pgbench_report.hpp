// What pgbench prints, as values: the report of versions 9.4 to 19. Times are printed in milliseconds and stand here in
// seconds; percentages are ratios here. Source: printResults and printProgressReport in pgbench.c.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

struct PgbenchCount { // "3683 (36.830%)"; nullopt: NaN was printed
    std::uint64_t count = 0;
    std::optional<double> ratio;
};

struct PgbenchStatement {
    std::string text;
    std::optional<double> latency_seconds;
    std::optional<std::uint64_t> failures, retries;
};

// What is counted for all scripts together, and in later sections for each.
struct PgbenchTotals {
    std::optional<std::uint64_t> transactions;
    std::optional<PgbenchCount> failed, serialization_failures, deadlock_failures, other_failures, retried, skipped;
    std::optional<std::uint64_t> retries;
    struct AboveLimit {
        double limit_seconds = 0;
        std::uint64_t count = 0, of = 0;
    };
    std::optional<AboveLimit> above_limit;
    std::optional<double> latency_mean_seconds, latency_stdev_seconds;
    std::optional<double> transactions_per_second;
    std::vector<PgbenchStatement> statements;
};

struct PgbenchScript {
    std::string name;
    std::optional<std::uint64_t> weight;
    std::optional<double> share; // of all transactions
    PgbenchTotals totals;
};

struct PgbenchProgress {
    double at_seconds = 0;
    std::optional<double> transactions_per_second, latency_mean_seconds, latency_stdev_seconds;
    std::optional<std::uint64_t> failed;
};

struct PgbenchReport {
    std::string version; // of the heading, empty before 15
    std::string transaction_type, query_mode, partition_method;
    std::optional<std::uint64_t> scale, partitions, clients, threads, max_tries, transactions_per_client, planned;
    std::optional<double> duration_seconds;
    PgbenchTotals totals; // its rate leaves connecting out where pgbench can tell
    std::optional<double> transactions_per_second_including_connections;
    bool reconnects = false; // -C: a connection each transaction
    bool latency_includes_failures = false;
    std::optional<double> initial_connection_seconds, connection_seconds; // the latter a mean, with -C
    std::optional<double> lag_mean_seconds, lag_max_seconds;              // behind the schedule of --rate
    std::vector<PgbenchScript> scripts;
    std::vector<PgbenchProgress> progress;
    std::vector<std::string> errors, warnings; // messages of pgbench and of the server
    bool aborted = false;                      // the run, or clients of it
    bool complete = false;                     // the report is there, to the end of its totals
};

// "progress: 5.0 s, 123.4 tps, lat 1.234 ms stddev 0.567, 0 failed"
std::optional<PgbenchProgress> parse_pgbench_progress(std::string_view line);

// Both streams may be read as one text: messages are told from the report by their form. An Error when a line of the
// report is not known; a text without any report gives one with complete == false.
Result<PgbenchReport> parse_pgbench_report(std::string_view out, std::string_view err);

} // namespace perfrig
