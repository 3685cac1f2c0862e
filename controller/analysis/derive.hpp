// The workshop of derived.cpp: what its parts share. Not for others.
#pragma once

#include "controller/analysis/counters.hpp"
#include "controller/analysis/derived.hpp"

#include <set>
#include <string>

namespace perfrig::analysis {

constexpr double coverage_resolution_seconds = 0.1;
constexpr double coverage_least = 0.9, coverage_most = 1.1; // outside: a finding
constexpr double other_capacity_limit = 0.05;               // above: a finding
constexpr double other_busy_limit = 0.1;                    // above: a finding too, where it is more than
constexpr double other_resolution = 0.02;                   // what sampling by ticks can be wrong by

struct Throughput {
    double per_second = 0;
    std::string metric; // requests_per_second ...
    Window window;      // of the tool
};

struct Derivation {
    explicit Derivation(const RunData& from, const Window& measure) : data(from), index(from.series), window(measure) {}

    const RunData& data;
    SeriesIndex index;
    Window window;
    std::optional<Throughput> throughput;
    Evaluation out;
    std::set<std::string> said;

    void metric(std::string name, model::Labels labels, std::string unit, double value, const Window& used);
    void find(std::string check, model::Severity severity, std::string subject, std::string message, Json evidence);
    // The finding that takes the place of a metric; `warn` false where nothing is wrong.
    void missing(const std::string& name, const std::string& subject, const std::string& why, bool warn = true);
    // The throughput, where the tool's window covers at least four fifths of `used`; else a finding, once.
    std::optional<double> throughput_over(const Window& used);
};

void derive_threads(Derivation& d);
void derive_other(Derivation& d);

} // namespace perfrig::analysis
