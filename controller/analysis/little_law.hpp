// Do the figures that one tool reports agree with each other? In a closed loop (wrk, pgbench without a rate) each of N
// clients has one request under way, or is on its own way to the next. Little's law (1961): requests under way = rate x
// mean latency. So rate x mean = N less what the clients themselves took; it can't be more than N, whatever was
// measured. Where it is more, the mean is not the mean of those requests (wrk adds made-up latencies: see
// agent/tools/wrk.hpp); where it is much less, requests waited in the tool itself, outside of the latency it reports.
#pragma once

#include "controller/analysis/run_data.hpp"

#include <optional>

namespace perfrig::analysis {

struct ClosedLoop {
    double clients = 0; // N: connections, clients
    double per_second = 0;
    double latency_mean_seconds = 0;
};

constexpr double in_flight_most = 1.1, in_flight_least = 0.8; // rounded figures, connecting and the ends of the run

// Requests under way by Little's law, of each client: 1 where the clients did nothing else. None where a figure is not
// above zero.
std::optional<double> in_flight_ratio(const ClosedLoop& loop);

// What is doubtful about it; empty: nothing.
std::string doubt_of(const ClosedLoop& loop);

// The loops of a run by the tool's label ("" where one tool ran): of tools that report `concurrency`, one rate and a
// mean latency over all requests.
std::map<std::string, ClosedLoop> closed_loops(const std::vector<model::Metric>& metrics);

} // namespace perfrig::analysis
