#include "controller/analysis/used_cpu.hpp"

#include <algorithm>

namespace perfrig::analysis {

namespace {

std::optional<model::Point> last_before(const model::Series& series, std::int64_t end_ns) {
    const auto behind = std::ranges::upper_bound(series.points, end_ns, {}, &model::Point::time_ns);
    if (behind == series.points.begin()) return std::nullopt;
    return *std::prev(behind);
}

} // namespace

std::optional<Growth> growth(const model::Series& series, const Window& window) {
    const auto last = last_before(series, window.end_ns);
    if (!last || last->time_ns < window.start_ns) return std::nullopt;
    const auto first = last_before(series, window.start_ns);
    return Growth{std::max(0.0, last->value - (first ? first->value : 0)), last->value, last->time_ns};
}

std::map<std::string, UsedCpu> used_cpu(const SeriesIndex& index, const Window& window,
                                        const std::function<bool(const model::Series&)>& takes) {
    std::map<std::string, UsedCpu> out;
    for (const model::Series* series : index.named("process_cpu_seconds")) {
        const auto grown = takes(*series) ? growth(*series, window) : std::nullopt;
        if (!grown) continue;
        UsedCpu& used = out[label(*series, "process")];
        used.last_ns = std::max(used.last_ns, grown->last_ns);
        if (grown->last_ns == window.end_ns) {
            used.living += grown->by;
        } else {
            used.ended += grown->by;
            used.seen_of_waited += grown->last;
        }
    }
    for (const model::Series* series : index.named("process_waited_children_cpu_seconds")) {
        const auto used = out.find(label(*series, "process"));
        const auto grown = used != out.end() && takes(*series) ? growth(*series, window) : std::nullopt;
        if (!grown) continue;
        used->second.waited += grown->by;
        if (grown->last_ns != window.end_ns) used->second.seen_of_waited += grown->last;
    }
    return out;
}

} // namespace perfrig::analysis
