// What the threads' counters give: switches, run-queue wait, thread groups, coverage.
#include "controller/analysis/derive.hpp"
#include "controller/analysis/used_cpu.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace perfrig::analysis {

std::string thread_group(std::string_view comm) {
    // Digits at the end, with what parts them from the name, as often as they come: "pool-2-thread-13" keeps its pool.
    std::size_t end = comm.size();
    while (end > 0 && std::isdigit(static_cast<unsigned char>(comm[end - 1]))) --end;
    if (end < comm.size())
        while (end > 0 && std::string_view("-#_:/. ").find(comm[end - 1]) != std::string_view::npos) --end;
    return std::string(end == 0 ? comm : comm.substr(0, end));
}

namespace {

constexpr const char* separator = "\x1f"; // between process and group in a key
std::string process_of(const model::Series& series) { return label(series, "process"); }
std::string process_and_group(const model::Series& series) {
    const std::string process = process_of(series);
    return process.empty() ? process : process + separator + thread_group(label(series, "comm"));
}
model::Labels group_labels(const std::string& key) {
    const std::size_t at = key.find(separator);
    return {{"process", key.substr(0, at)}, {"group", key.substr(at + 1)}};
}
model::Labels with(model::Labels labels, const char* key, std::string value) {
    labels[key] = std::move(value);
    return labels;
}

using Totals = std::map<std::string, Total>;

// Nanoseconds of schedstat where the kernel has them, else clock ticks of stat.
Totals cpu_totals(const Derivation& d, const std::function<std::string(const model::Series&)>& of) {
    Totals out = thread_totals(d.index, "thread_cpu_seconds", d.window, of);
    const Totals user = thread_totals(d.index, "thread_cpu_user_seconds", d.window, of);
    const Totals system = thread_totals(d.index, "thread_cpu_system_seconds", d.window, of);
    for (const auto& [key, total] : user) {
        if (out.contains(key)) continue;
        Total both = total;
        if (const auto found = system.find(key); found != system.end()) both.sum += found->second.sum;
        out[key] = both;
    }
    return out;
}

void derive_switches(Derivation& d, const std::set<std::string>& processes) {
    for (const char* kind : {"voluntary", "involuntary"}) {
        const std::string name = std::string("thread_") + kind + "_switches";
        const Totals totals = thread_totals(d.index, name, d.window, process_of);
        for (const std::string& process : processes) {
            const auto total = totals.find(process);
            if (total == totals.end() || total->second.window->seconds() <= 0) {
                d.missing("context_switches_per_second", process, "no " + name + " of it was read twice in the window");
                continue;
            }
            const model::Labels labels{{"process", process}, {"kind", kind}};
            const double rate = total->second.per_second();
            d.metric("context_switches_per_second", labels, "1/s", rate, *total->second.window);
            if (const auto throughput = d.throughput_over(*total->second.window))
                d.metric("context_switches_per_request", labels, "count", rate / *throughput, *total->second.window);
        }
        for (const auto& [key, total] : thread_totals(d.index, name, d.window, process_and_group))
            if (total.window->seconds() > 0)
                d.metric("thread_group_switches_per_second", with(group_labels(key), "kind", kind), "1/s",
                         total.per_second(), *total.window);
    }
}

void derive_waits(Derivation& d, const std::set<std::string>& processes, const Totals& cpu) {
    const Totals waits = thread_totals(d.index, "thread_run_queue_wait_seconds", d.window, process_of);
    for (const std::string& process : processes) {
        const auto wait = waits.find(process);
        if (wait == waits.end() || wait->second.thread_seconds <= 0) {
            d.missing(
                "run_queue_wait_ratio", process,
                "no thread_run_queue_wait_seconds of it was read twice in the window (a kernel without schedstat?)");
            continue;
        }
        const Total& waited = wait->second;
        d.metric("run_queue_wait_ratio", {{"process", process}, {"of", "thread"}}, "ratio",
                 waited.sum / waited.thread_seconds, *waited.window);
        const auto used = cpu.find(process);
        const double demand = used == cpu.end() ? 0 : waited.sum + used->second.sum;
        if (demand > 0)
            d.metric("run_queue_wait_ratio", {{"process", process}, {"of", "demand"}}, "ratio", waited.sum / demand,
                     *waited.window);
        else
            d.missing("run_queue_wait_ratio", process, "its threads neither ran nor waited, so there is no demand");
    }
}

void derive_groups(Derivation& d) {
    const Totals cpu = cpu_totals(d, process_and_group);
    const Totals waits = thread_totals(d.index, "thread_run_queue_wait_seconds", d.window, process_and_group);
    for (const auto& [key, used] : cpu) {
        if (used.window->seconds() <= 0) continue;
        d.metric("thread_group_cpu_ratio", group_labels(key), "ratio", used.per_second(), *used.window);
        d.metric("thread_group_threads", group_labels(key), "count", used.counters, *used.window);
        const auto waited = waits.find(key);
        if (waited != waits.end() && waited->second.sum + used.sum > 0)
            d.metric("thread_group_run_queue_wait_ratio", group_labels(key), "ratio",
                     waited->second.sum / (waited->second.sum + used.sum), *used.window);
    }
}

// From the first reading in measure to the last, of any process.
std::optional<Window> readings_in(const Derivation& d) {
    std::optional<Window> out;
    for (const model::Series* series : d.index.named("process_cpu_seconds"))
        for (const model::Point& point : series->points) {
            if (point.time_ns < d.window.start_ns || point.time_ns > d.window.end_ns) continue;
            if (!out) out = Window{point.time_ns, point.time_ns};
            out->start_ns = std::min(out->start_ns, point.time_ns);
            out->end_ns = std::max(out->end_ns, point.time_ns);
        }
    return out;
}

void derive_coverage(Derivation& d, const std::set<std::string>& processes, const Totals& threads) {
    const auto window = readings_in(d);
    const auto whole = window ? used_cpu(d.index, *window, [](const model::Series&) { return true; })
                              : std::map<std::string, UsedCpu>();
    for (const std::string& process : processes) {
        const auto all = whole.find(process);
        const auto sampled = threads.find(process);
        if (all == whole.end() || sampled == threads.end()) {
            d.missing("thread_coverage_ratio", process, "its threads or its own CPU seconds were not read twice");
        } else if (all->second.seconds() < coverage_resolution_seconds) {
            d.missing("thread_coverage_ratio", process,
                      "it used less than 0.1 CPU seconds in the window, too little against ticks of 10 ms", false);
        } else {
            const double used = all->second.seconds(), ratio = sampled->second.sum / used;
            d.metric("thread_coverage_ratio", {{"process", process}}, "ratio", ratio, *window);
            if (ratio < coverage_least || ratio > coverage_most)
                d.find("thread_coverage", model::Severity::warning, process,
                       "the threads of " + process + " that were sampled used " +
                           std::to_string(std::lround(100 * ratio)) +
                           " % of its CPU time: its switches, waits and thread groups are that far from complete",
                       {{"thread_seconds", sampled->second.sum},
                        {"process_seconds", used},
                        {"unseen_processes_seconds", all->second.unseen()}});
        }
    }
}

} // namespace

void derive_threads(Derivation& d) {
    std::set<std::string> processes; // those that lived in measure
    for (const model::Process& process : d.data.processes)
        if (process.started_ns < d.window.end_ns && process.ended_ns.value_or(d.window.end_ns) > d.window.start_ns)
            processes.insert(process.name);
    const Totals cpu = cpu_totals(d, process_of);
    derive_switches(d, processes);
    derive_waits(d, processes, cpu);
    derive_groups(d);
    derive_coverage(d, processes, cpu);
}

} // namespace perfrig::analysis
