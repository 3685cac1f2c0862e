// What analysis is given: one run's facts and series, as values. Nothing here does I/O.
#pragma once

#include "controller/model/run.hpp"

#include <map>
#include <string>
#include <vector>

namespace perfrig::analysis {

// [start, end] on one agent's CLOCK_MONOTONIC.
struct Window {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    double seconds() const { return static_cast<double>(end_ns - start_ns) / 1e9; }
    friend bool operator==(const Window&, const Window&) = default;
};

struct RunData {
    model::Id run = 0;
    std::map<std::string, std::string> roles;    // role -> cpulist granted (run_machine.roles)
    std::vector<std::vector<std::string>> share; // roles that the profile lets share CPUs
    std::vector<model::Phase> phases;
    std::vector<model::Process> processes;
    std::vector<model::Metric> metrics;   // what the tools reported
    std::vector<model::Finding> findings; // what the agent found
    std::vector<model::Series> series;    // with samples from outside the window or without
};

struct Evaluation {
    std::vector<model::Metric> metrics;   // source "derived"
    std::vector<model::Finding> findings; // source "analysis"
    bool void_run = false;
};

} // namespace perfrig::analysis
