#include "controller/analysis/counters.hpp"

#include <algorithm>

namespace perfrig::analysis {

std::optional<Reading> read_counter(const model::Series& series, const Window& window) {
    const auto& points = series.points;
    const auto first = std::ranges::lower_bound(points, window.start_ns, {}, &model::Point::time_ns);
    const auto end = std::ranges::upper_bound(points, window.end_ns, {}, &model::Point::time_ns);
    if (end - first < 2) return std::nullopt;
    const auto last = std::prev(end);
    if (last->value < first->value || last->time_ns == first->time_ns) return std::nullopt;
    return Reading{last->value - first->value, {first->time_ns, last->time_ns}, first != points.begin(), first->value};
}

void Total::add(const Reading& reading) {
    sum += reading.delta;
    thread_seconds += reading.window.seconds();
    ++counters;
    if (!window) window = reading.window;
    window->start_ns = std::min(window->start_ns, reading.window.start_ns);
    window->end_ns = std::max(window->end_ns, reading.window.end_ns);
}

SeriesIndex::SeriesIndex(const std::vector<model::Series>& series) {
    for (const model::Series& one : series) by_name_[one.info.name].push_back(&one);
}

const std::vector<const model::Series*>& SeriesIndex::named(std::string_view name) const {
    static const std::vector<const model::Series*> none;
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? none : found->second;
}

bool is_rate(std::string_view metric) {
    return metric == "requests_per_second" || metric == "transactions_per_second" || metric == "operations_per_second";
}

std::string label(const model::Series& series, const char* key) {
    const auto found = series.info.labels.find(key);
    return found == series.info.labels.end() ? std::string() : found->second;
}

namespace {
// A thread is a pid and a tid; its name may change.
std::string thread_of(const model::Series& series) { return label(series, "pid") + "/" + label(series, "tid"); }

std::optional<std::int64_t> first_inside(const model::Series& series, const Window& window) {
    const auto first = std::ranges::lower_bound(series.points, window.start_ns, {}, &model::Point::time_ns);
    if (first == series.points.end() || first->time_ns > window.end_ns) return std::nullopt;
    return first->time_ns;
}
} // namespace

std::map<std::string, Total> thread_totals(const SeriesIndex& index, std::string_view name, const Window& window,
                                           const std::function<std::string(const model::Series&)>& of) {
    const auto& all = index.named(name);
    // The first tick inside the window, and when each thread was first seen under any name.
    std::optional<std::int64_t> first_tick;
    std::map<std::string, std::int64_t> first_seen;
    for (const model::Series* series : all) {
        const auto first = first_inside(*series, window);
        if (!first) continue;
        first_tick = std::min(first_tick.value_or(*first), *first);
        const std::int64_t seen = std::min(series->points.front().time_ns, *first);
        const auto [known, added] = first_seen.emplace(thread_of(*series), seen);
        if (!added) known->second = std::min(known->second, seen);
    }
    std::map<std::string, Total> out;
    for (const model::Series* series : all) {
        const std::string group = of(*series);
        if (group.empty()) continue;
        auto reading = read_counter(*series, window);
        const auto first = first_inside(*series, window);
        const bool born = first && *first > *first_tick && first_seen.at(thread_of(*series)) == *first;
        if (!reading && born) // seen once: all it did, it did in the window
            reading = Reading{0,
                              {*first, *first},
                              false,
                              std::ranges::lower_bound(series->points, *first, {}, &model::Point::time_ns)->value};
        if (!reading) continue;
        if (born) reading->delta += reading->first;
        out[group].add(*reading);
    }
    return out;
}

} // namespace perfrig::analysis
