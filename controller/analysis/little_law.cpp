#include "controller/analysis/little_law.hpp"

#include "controller/analysis/counters.hpp"

#include <cstdio>

namespace perfrig::analysis {

namespace {
std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.3g", value);
    return text;
}
} // namespace

std::optional<double> in_flight_ratio(const ClosedLoop& loop) {
    if (!(loop.clients > 0 && loop.per_second > 0 && loop.latency_mean_seconds > 0)) return std::nullopt;
    return loop.per_second * loop.latency_mean_seconds / loop.clients;
}

std::string doubt_of(const ClosedLoop& loop) {
    const auto ratio = in_flight_ratio(loop);
    if (!ratio || (*ratio <= in_flight_most && *ratio >= in_flight_least)) return {};
    const std::string turn = number(loop.clients / loop.per_second * 1e6) + " us";
    const std::string mean = number(loop.latency_mean_seconds * 1e6) + " us";
    if (*ratio > in_flight_most)
        return "the latencies contradict the rate: a mean of " + mean + " at " + number(loop.per_second) + "/s means " +
               number(*ratio * loop.clients) + " requests under way, with " + number(loop.clients) +
               " clients; a turn took " + turn + " on average. Don't use the mean, and distrust high quantiles";
    return "clients were without a request for " + number(100 * (1 - *ratio)) + " % of the time: a turn took " + turn +
           " on average, its request " + mean + ". The rest is the tool's own, so the rate is not the service's limit";
}

std::map<std::string, ClosedLoop> closed_loops(const std::vector<model::Metric>& metrics) {
    std::map<std::string, ClosedLoop> found;
    for (const model::Metric& metric : metrics) {
        if (metric.source == "derived" || !metric.value) continue;
        model::Labels labels = metric.labels;
        std::string tool;
        if (const auto named = labels.extract("tool")) tool = named.mapped();
        if (labels.empty() && metric.name == "concurrency") found[tool].clients = *metric.value;
        if (labels.empty() && is_rate(metric.name)) found[tool].per_second = *metric.value;
        if (metric.name == "latency_seconds" && labels == model::Labels{{"stat", "mean"}})
            found[tool].latency_mean_seconds = *metric.value;
    }
    std::erase_if(found, [](const auto& one) { return !in_flight_ratio(one.second); });
    return found;
}

} // namespace perfrig::analysis
