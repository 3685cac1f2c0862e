// The workshop of derived.cpp: what its parts share. Not for others.
#pragma once

#include "controller/analysis/counters.hpp"
#include "controller/analysis/derived.hpp"

#include <set>
#include <string>

namespace perfrig::analysis {

constexpr double coverage_resolution_seconds = 0.1;

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
    // The finding that takes the place of a metric; `warn` false where nothing is wrong.
    void missing(const std::string& name, const std::string& subject, const std::string& why, bool warn = true);
    // The throughput, where the tool's window covers at least four fifths of `used`; else a finding, once.
    std::optional<double> throughput_over(const Window& used);
};

void derive_threads(Derivation& d);

} // namespace perfrig::analysis
