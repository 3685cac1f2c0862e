#include "controller/analysis/derived.hpp"

#include "common/base/cpu_list.hpp"
#include "controller/analysis/derive.hpp"
#include "controller/analysis/little_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace perfrig::analysis {

namespace {

constexpr double shortest_window_seconds = 0.9; // "measure: 1s" passes

constexpr std::array<std::string_view, 15> wanted{"cpu_user_seconds",
                                                  "cpu_nice_seconds",
                                                  "cpu_system_seconds",
                                                  "cpu_irq_seconds",
                                                  "cpu_softirq_seconds",
                                                  "thread_cpu_seconds",
                                                  "thread_cpu_user_seconds",
                                                  "thread_cpu_system_seconds",
                                                  "thread_run_queue_wait_seconds",
                                                  "thread_voluntary_switches",
                                                  "thread_involuntary_switches",
                                                  "process_cpu_seconds",
                                                  "process_waited_children_cpu_seconds",
                                                  "process_rss_bytes",
                                                  "agent_cpu_seconds"};

// The rate that the run's tools reported, where exactly one did.
void find_throughput(Derivation& d) {
    std::vector<Throughput> found;
    std::string bad;
    for (const model::Metric& metric : d.data.metrics) {
        if (metric.source == "derived") continue;
        const bool whole = std::ranges::all_of(metric.labels, [](const auto& label) { return label.first == "tool"; });
        if (!is_rate(metric.name) || !whole) continue;
        if (!metric.value || *metric.value <= 0 || (metric.status != "ok" && metric.status != "suspect"))
            bad = metric.name + " is worth nothing (" + metric.status + ")";
        else
            found.push_back(
                {*metric.value, metric.name, {metric.window_start_ns.value_or(0), metric.window_end_ns.value_or(0)}});
    }
    if (found.size() == 1) {
        d.throughput = found.front();
    } else {
        const std::string why = found.size() > 1 ? "several tools report a throughput: which one is meant is not told"
                                : bad.empty()
                                    ? "no tool of the run reports requests, transactions or operations per second"
                                    : bad;
        d.missing("per_request", "throughput", why + "; service demand and switches per request need one",
                  found.size() > 1);
    }
}

struct Busy {
    double user = 0, system = 0, cpu_seconds = 0;
    std::optional<Window> window;
};

// Adds one CPU; what is missing otherwise.
std::string add_cpu(Derivation& d, int cpu, Busy& busy) {
    Total user, system;
    for (const char* mode : {"user", "nice", "system", "irq", "softirq"}) {
        const std::string name = "cpu_" + std::string(mode) + "_seconds";
        const auto& all = d.index.named(name);
        const auto found =
            std::ranges::find_if(all, [&](const auto* s) { return label(*s, "cpu") == std::to_string(cpu); });
        const auto reading = found == all.end() ? std::nullopt : read_counter(**found, d.window);
        if (!reading)
            return name + " of CPU " + std::to_string(cpu) +
                   (found == all.end() ? " was not sampled" : " was not read twice in the window, or went backward");
        (std::string_view(mode) == "user" || std::string_view(mode) == "nice" ? user : system).add(*reading);
    }
    busy.user += user.sum;
    busy.system += system.sum;
    busy.cpu_seconds += user.window->seconds();
    if (!busy.window) busy.window = user.window;
    busy.window->start_ns = std::min(busy.window->start_ns, user.window->start_ns);
    busy.window->end_ns = std::max(busy.window->end_ns, user.window->end_ns);
    return {};
}

void derive_roles(Derivation& d) {
    if (d.data.roles.empty()) d.missing("cpu_busy_ratio", "roles", "the agent did not say which CPUs the roles got");
    for (const auto& [role, list] : d.data.roles) {
        const auto cpus = CpuList::parse(list);
        if (!cpus || cpus->empty()) {
            d.missing("cpu_busy_ratio", role, cpus ? "it has no CPUs of its own" : cpus.error().text(), !cpus);
            continue;
        }
        Busy busy;
        std::string lacking;
        for (const int cpu : *cpus)
            if (lacking.empty()) lacking = add_cpu(d, cpu, busy);
        if (!lacking.empty()) {
            d.missing("cpu_busy_ratio", role, lacking);
            continue;
        }
        const double total = (busy.user + busy.system) / busy.cpu_seconds;
        d.metric("cpu_busy_ratio", {{"role", role}, {"mode", "user"}}, "ratio", busy.user / busy.cpu_seconds,
                 *busy.window);
        d.metric("cpu_busy_ratio", {{"role", role}, {"mode", "system"}}, "ratio", busy.system / busy.cpu_seconds,
                 *busy.window);
        d.metric("cpu_busy_ratio", {{"role", role}, {"mode", "total"}}, "ratio", total, *busy.window);
        if (const auto rate = d.throughput_over(*busy.window))
            d.metric("service_demand_seconds", {{"role", role}}, "s", static_cast<double>(cpus->size()) * total / *rate,
                     *busy.window);
    }
}

void check_closed_loops(Derivation& d) {
    for (const auto& [tool, loop] : closed_loops(d.data.metrics)) {
        const std::string subject = tool.empty() ? "the tool" : tool;
        const double ratio = in_flight_ratio(loop).value();
        d.metric("in_flight_ratio", tool.empty() ? model::Labels{} : model::Labels{{"tool", tool}}, "ratio", ratio,
                 d.throughput ? d.throughput->window : d.window);
        if (std::string doubt = doubt_of(loop); !doubt.empty())
            d.find("little_law", model::Severity::warning, subject, std::move(doubt),
                   {{"clients", loop.clients},
                    {"per_second", loop.per_second},
                    {"latency_mean_seconds", loop.latency_mean_seconds},
                    {"in_flight_ratio", ratio}});
    }
}

void derive_agent(Derivation& d) {
    Total own;
    for (const model::Series* series : d.index.named("agent_cpu_seconds"))
        if (const auto reading = read_counter(*series, d.window)) own.add(*reading);
    if (!own.window)
        return d.missing("agent_cpu_seconds", "agent", "its own CPU seconds were not read twice in the window");
    d.metric("agent_cpu_seconds", {}, "s", own.sum, *own.window);
    d.metric("agent_cpu_ratio", {}, "ratio", own.per_second(), *own.window);
}

} // namespace

std::span<const std::string_view> series_wanted() { return wanted; }

std::optional<Window> measure_window(const std::vector<model::Phase>& phases) {
    for (const model::Phase& phase : phases)
        if (phase.name == "measure" && phase.end_ns && *phase.end_ns > phase.start_ns)
            return Window{phase.start_ns, *phase.end_ns};
    return std::nullopt;
}

void Derivation::metric(std::string name, model::Labels labels, std::string unit, double value, const Window& used) {
    if (!std::isfinite(value)) return missing(name, "value", "it is no finite number");
    model::Metric one;
    one.name = std::move(name);
    one.labels = std::move(labels);
    one.unit = std::move(unit);
    one.value = value;
    one.window_start_ns = used.start_ns;
    one.window_end_ns = used.end_ns;
    one.source = "derived";
    out.metrics.push_back(std::move(one));
}

void Derivation::find(std::string check, model::Severity severity, std::string subject, std::string message,
                      Json evidence) {
    model::Finding one;
    one.run_id = data.run;
    one.check_name = std::move(check);
    one.severity = severity;
    one.subject = std::move(subject);
    one.message = std::move(message);
    one.evidence = std::move(evidence);
    one.source = "analysis";
    out.findings.push_back(std::move(one));
}

void Derivation::missing(const std::string& name, const std::string& subject, const std::string& why, bool warn) {
    const std::string text = "no " + name + " of " + subject + ": " + why;
    if (said.insert(text).second)
        find("derived_metric_missing", warn ? model::Severity::warning : model::Severity::info, subject, text,
             Json::object());
}

std::optional<double> Derivation::throughput_over(const Window& used) {
    if (!throughput) return std::nullopt; // said once already
    const std::int64_t common =
        std::min(used.end_ns, throughput->window.end_ns) - std::max(used.start_ns, throughput->window.start_ns);
    if (static_cast<double>(common) >= 0.8 * static_cast<double>(used.end_ns - used.start_ns))
        return throughput->per_second;
    missing("per_request", "throughput", throughput->metric + " was measured over another window than the samples");
    return std::nullopt;
}

Evaluation derive(const RunData& data) {
    const auto window = measure_window(data.phases);
    Derivation d(data, window.value_or(Window{}));
    if (!window) {
        d.find("derived_metric_missing", model::Severity::warning, "measure",
               "no derived metrics: the run has no measure phase that began and ended", Json::object());
        return std::move(d.out);
    }
    if (window->seconds() < shortest_window_seconds) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "no derived metrics: it measured for %.2f s, and counters that are read once a second and count "
                      "ticks of 10 ms need at least %g s",
                      window->seconds(), shortest_window_seconds);
        d.find("derived_metric_missing", model::Severity::warning, "measure", text,
               {{"measured_seconds", window->seconds()}});
        return std::move(d.out);
    }
    find_throughput(d);
    derive_roles(d);
    derive_other(d);
    derive_threads(d);
    check_closed_loops(d);
    derive_agent(d);
    return std::move(d.out);
}

} // namespace perfrig::analysis
