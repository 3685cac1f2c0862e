#include "agent/collectors/collector.hpp"

namespace perfrig {

int SampleSink::series(std::string name, std::string unit, SeriesKind kind, std::map<std::string, std::string> labels) {
    const int id = next_id_++;
    tick_.new_series.push_back({id, std::move(name), std::move(unit), kind, std::move(labels)});
    return id;
}

void SampleSink::error(std::string text) {
    if (tick_.collector_errors.size() < most_errors)
        tick_.collector_errors.push_back(std::move(text));
    else
        ++dropped_errors_;
}

void SampleSink::finding(const std::string& text) {
    if (said_.size() < most_errors && said_.insert(text).second) tick_.findings.push_back(text);
}

Tick SampleSink::take(std::int64_t took_ns) {
    tick_.took_ns = took_ns;
    if (dropped_errors_ > 0)
        tick_.collector_errors.push_back(std::to_string(dropped_errors_) + " more errors in this tick were dropped");
    dropped_errors_ = 0;
    Tick next;
    next.values.reserve(tick_.values.size()); // the next tick will be about as large
    return std::exchange(tick_, std::move(next));
}

} // namespace perfrig
