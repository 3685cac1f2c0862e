#include "agent/session/agent_metrics.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/base/json.hpp"
#include "common/metrics/exposition.hpp"

#include <sys/resource.h>

namespace perfrig {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using LabelPairs = std::vector<std::pair<std::string, std::string>>;

class Families {
  public:
    void gauge(const std::string& name, const std::string& help, double value, const LabelPairs& labels = {}) {
        add(name, help, MetricType::Gauge, labels).gauge.value = value;
    }
    void counter(const std::string& name, const std::string& help, double value, const LabelPairs& labels = {}) {
        add(name, help, MetricType::Counter, labels).counter.value = value;
    }
    std::string text() const { return write_exposition(families_); }

  private:
    ClientMetric& add(const std::string& name, const std::string& help, MetricType type, const LabelPairs& labels) {
        MetricFamily* family = nullptr;
        for (MetricFamily& one : families_)
            if (one.name == name) family = &one;
        if (!family) {
            families_.push_back({name, help, type, {}});
            family = &families_.back();
        }
        ClientMetric& metric = family->metric.emplace_back();
        for (const auto& [label, value] : labels) metric.label.push_back({label, value});
        return metric;
    }
    std::vector<MetricFamily> families_;
};

void add_cpus(Families& out, const std::vector<CpuRates>& cpus) {
    const std::string help = "Share of the last second that the CPU spent in each mode, 0 to 1.";
    for (const CpuRates& cpu : cpus) {
        const std::string id = std::to_string(cpu.cpu);
        const std::pair<const char*, double> modes[] = {
            {"user", cpu.user},       {"nice", cpu.nice},   {"system", cpu.system}, {"irq", cpu.irq},
            {"softirq", cpu.softirq}, {"steal", cpu.steal}, {"iowait", cpu.iowait}, {"idle", cpu.idle}};
        for (const auto& [mode, share] : modes)
            out.gauge("perfrig_cpu_share_ratio", help, share, {{"cpu", id}, {"mode", mode}});
        if (cpu.frequency_hertz)
            out.gauge("perfrig_cpu_frequency_hertz", "The CPU's frequency, as the kernel says.", *cpu.frequency_hertz,
                      {{"cpu", id}});
    }
}

void add_groups(Families& out, const std::vector<ThreadGroupRates>& groups) {
    for (const ThreadGroupRates& group : groups) {
        const LabelPairs labels = {{"process", group.process}, {"role", group.role}, {"group", group.group}};
        const auto with = [&](const char* label, const char* value) {
            LabelPairs more = labels;
            more.emplace_back(label, value);
            return more;
        };
        out.gauge("perfrig_thread_group_threads", "Threads of the group.", static_cast<double>(group.threads), labels);
        const std::string cpu_help = "CPU seconds per second that the group's threads used.";
        out.gauge("perfrig_thread_group_cpu_ratio", cpu_help, group.user_cpus, with("mode", "user"));
        out.gauge("perfrig_thread_group_cpu_ratio", cpu_help, group.system_cpus, with("mode", "system"));
        const std::string switch_help = "Context switches per second of the group's threads.";
        out.gauge("perfrig_thread_group_switches_per_second", switch_help, group.voluntary_switches_per_second,
                  with("kind", "voluntary"));
        out.gauge("perfrig_thread_group_switches_per_second", switch_help, group.involuntary_switches_per_second,
                  with("kind", "involuntary"));
        if (group.run_queue_wait_per_second)
            out.gauge("perfrig_thread_group_run_queue_wait_ratio",
                      "Seconds per second that the group's threads waited to run, summed over them.",
                      *group.run_queue_wait_per_second, labels);
    }
}

} // namespace

OwnFigures read_own_figures() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) * 1024};
}

std::string agent_exposition(const ProcessSnapshot& snapshot, const WorkStatus::View& work, const SpoolFigures& spool,
                             const LinkFigures& link, const OwnFigures& own, const std::string& version) {
    Families out;
    out.gauge("perfrig_agent_info", "The agent's version.", 1, {{"version", version}});
    out.gauge("perfrig_run_info", "What the agent works on; the run's id stands here alone.", 1,
              {{"run", work.run == 0 ? "" : std::to_string(work.run)},
               {"experiment", work.experiment},
               {"state", work.state}});
    out.gauge("perfrig_run_measuring", "1 while a run is in its phase measure.", work.measuring ? 1 : 0);
    add_cpus(out, snapshot.cpus);
    add_groups(out, snapshot.groups);
    for (const ServiceMemory& memory : snapshot.memory)
        out.gauge("perfrig_process_resident_bytes", "Resident memory of a run's process.", memory.rss_bytes,
                  {{"process", memory.process}, {"role", memory.role}});
    if (snapshot.memory_available_bytes)
        out.gauge("perfrig_memory_available_bytes", "Memory that can be had without swapping.",
                  *snapshot.memory_available_bytes);
    out.gauge("perfrig_spool_bytes", "Bytes of records on disk.", static_cast<double>(spool.bytes));
    out.gauge("perfrig_spool_records", "Records that the controller has not acknowledged.",
              static_cast<double>(spool.records));
    out.gauge("perfrig_spool_oldest_seconds", "Age of the oldest record of this start that is not acknowledged.",
              static_cast<double>(spool.oldest_age_ns) / 1e9);
    out.counter("perfrig_spool_samples_refused_total", "Readings that a full spool refused.",
                static_cast<double>(spool.samples_refused));
    out.gauge("perfrig_link_connected", "1 while the link to the controller stands.", link.connected ? 1 : 0);
    out.counter("perfrig_link_connections_total", "How often the link was made.",
                static_cast<double>(link.connections));
    out.counter("perfrig_link_sent_bytes_total", "Bytes of records sent.", static_cast<double>(link.bytes_sent));
    if (link.clock_offset_ns)
        out.gauge("perfrig_clock_offset_seconds", "This machine's clock less the controller's.",
                  static_cast<double>(*link.clock_offset_ns) / 1e9);
    out.counter("perfrig_agent_cpu_seconds_total", "CPU seconds that the agent itself used.", own.cpu_seconds);
    out.gauge("perfrig_agent_peak_resident_bytes", "The agent's highest resident memory.", own.peak_resident_bytes);
    out.gauge("perfrig_collect_tick_seconds", "How long the last reading of all collectors took.",
              snapshot.tick_seconds);
    out.counter("perfrig_collect_errors_total", "What collectors could not read or understand.",
                static_cast<double>(snapshot.errors_total));
    return out.text();
}

bool may_scrape(const HttpRequest& request, const std::vector<std::string>& token_hashes) {
    const auto token = request.bearer_token();
    if (!token) return false;
    const std::string hash = sha256_hex(*token);
    bool known = false;
    for (const std::string& one : token_hashes) known |= equal_in_constant_time(one, hash);
    return known;
}

std::vector<std::string> load_scrape_hashes(const std::string& file) {
    std::vector<std::string> hashes;
    const auto text = read_file(file, 1 << 20);
    if (!text) return hashes; // none yet: everybody is refused until the controller says who may
    const auto json = parse_json(*text, file);
    if (json && json->is_array())
        for (const Json& item : *json)
            if (item.is_string()) hashes.push_back(item.get<std::string>());
    return hashes;
}

Result<void> save_scrape_hashes(const std::string& file, const std::vector<std::string>& hashes) {
    return write_file_atomically(file, Json(hashes).dump() + "\n", 0600);
}

} // namespace perfrig
