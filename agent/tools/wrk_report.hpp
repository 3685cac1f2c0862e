// What wrk prints, as values. wrk rounds for people: times step from us to ms, s, m and h (each its own unit on one
// line), counts carry k, M and G of 1000, bytes KB, MB and GB of 1024. Source: units.c and wrk.c of wrk 4.
#pragma once

#include "common/base/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perfrig {

// nullopt stands for a placeholder: -nan, or 0.00us where no request ended.
struct WrkReport {
    struct Row {
        std::optional<double> mean, stdev, max, within_stdev; // the last one a ratio
    };
    std::string asked;              // "10s", as printed: wrk rounds it to its unit (150 s reads "2m")
    double asked_seconds = 0;       // of that text
    double asked_least_seconds = 0; // the shortest duration that prints so
    std::string url;
    std::uint64_t threads = 0;
    std::uint64_t connections = 0;
    Row latency;                                                          // seconds
    Row per_thread;                                                       // requests per second of one thread
    std::vector<std::pair<std::string, std::optional<double>>> quantiles; // "0.99" -> seconds
    std::uint64_t requests = 0;
    std::optional<double> elapsed_seconds; // nullopt: wrapped below zero, the clock stepped back during the run
    double bytes_read = 0;
    std::uint64_t connect_errors = 0, read_errors = 0, write_errors = 0, timeouts = 0;
    std::uint64_t status_errors = 0; // answers other than 2xx and 3xx
    std::optional<double> requests_per_second, bytes_per_second;
    std::vector<std::string> script_output; // lines before and after the report
};

// An Error when the text is no wrk report, or only part of one.
Result<WrkReport> parse_wrk_report(std::string_view text);

} // namespace perfrig
