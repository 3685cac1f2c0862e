#include "agent/collectors/system.hpp"

#include "agent/collectors/proc_formats.hpp"
#include "common/process/thread_counts_channel.hpp"

#include <sys/resource.h>
#include <unistd.h>

namespace perfrig {

// --- CPU times --------------------------------------------------------------------------------------------------

CpuCollector::CpuCollector(const FileTree& tree)
    : file_(tree, "/proc/stat"), ticks_per_second_(static_cast<double>(::sysconf(_SC_CLK_TCK))) {}

void CpuCollector::tick(std::int64_t, SampleSink& sink) {
    static constexpr std::array<const char*, kinds> names = {
        "cpu_user_seconds",   "cpu_nice_seconds", "cpu_system_seconds",  "cpu_idle_seconds",
        "cpu_iowait_seconds", "cpu_irq_seconds",  "cpu_softirq_seconds", "cpu_steal_seconds"};
    const Reading reading = file_.read();
    if (!reading) return sink.error(file_.path() + ": " + reading.why());
    const auto cpus = parse_proc_stat(reading.text);
    if (!cpus) return sink.error(file_.path() + ": " + cpus.error().text());
    std::map<int, std::array<int, kinds>> gone = std::move(ids_);
    ids_.clear();
    for (const CpuTimes& c : *cpus) {
        auto node = gone.extract(c.cpu);
        if (node.empty()) { // new, or back online
            auto& ids = ids_[c.cpu];
            for (std::size_t i = 0; i < kinds; ++i)
                ids[i] = sink.series(names[i], "s", SeriesKind::counter, {{"cpu", std::to_string(c.cpu)}});
        } else {
            ids_.insert(std::move(node));
        }
        const std::array<std::uint64_t, kinds> ticks = {c.user,   c.nice, c.system,  c.idle,
                                                        c.iowait, c.irq,  c.softirq, c.steal};
        for (std::size_t i = 0; i < kinds; ++i)
            sink.add(ids_[c.cpu][i], static_cast<double>(ticks[i]) / ticks_per_second_);
    }
    for (const auto& [cpu, ids] : gone) { // offline now
        sink.finding("CPU " + std::to_string(cpu) + " went offline");
        for (const int id : ids) sink.end(id);
    }
}

// --- memory -----------------------------------------------------------------------------------------------------

MemoryCollector::MemoryCollector(const FileTree& tree) : file_(tree, "/proc/meminfo") {}

void MemoryCollector::tick(std::int64_t, SampleSink& sink) {
    static constexpr std::array<std::pair<const char*, const char*>, 6> fields = {
        {{"MemAvailable", "memory_available_bytes"},
         {"MemFree", "memory_free_bytes"},
         {"Buffers", "memory_buffers_bytes"},
         {"Cached", "memory_cached_bytes"},
         {"AnonPages", "memory_anonymous_bytes"},
         {"Dirty", "memory_dirty_bytes"}}};
    const Reading reading = file_.read();
    if (!reading) return sink.error(file_.path() + ": " + reading.why());
    const auto info = parse_meminfo(reading.text);
    if (!info) return sink.error(file_.path() + ": " + info.error().text());
    for (const auto& [field, series] : fields)
        if (const auto found = info->find(field); found != info->end())
            add(series, static_cast<double>(found->second), sink);
    const auto total = info->find("SwapTotal"), free = info->find("SwapFree");
    if (total != info->end() && free != info->end() && free->second <= total->second)
        add("swap_used_bytes", static_cast<double>(total->second - free->second), sink);
}

void MemoryCollector::add(const char* series, double bytes, SampleSink& sink) {
    int& id = ids_[series];
    if (id == 0) id = sink.series(series, "B", SeriesKind::gauge, {});
    sink.add(id, bytes);
}

// --- frequency and throttling -----------------------------------------------------------------------------------

FrequencyCollector::FrequencyCollector(const FileTree& tree) : budget_(OpenFileBudget::of_this_process() / 4) {
    const std::string root = "/sys/devices/system/cpu";
    const auto names = tree.list(root);
    if (!names) return;
    const auto add = [&](const std::string& cpu, const char* file, const char* series, const char* unit,
                         SeriesKind kind, double factor) {
        const std::string path = root + "/" + cpu + file;
        if (!tree.exists(path)) return;
        auto source = std::make_unique<Source>();
        source->path = tree.real_path(path);
        source->series = series;
        source->unit = unit;
        source->cpu = cpu.substr(3);
        source->kind = kind;
        source->factor = factor;
        sources_.push_back(std::move(source));
    };
    for (const std::string& cpu : *names) {
        if (!cpu.starts_with("cpu") || cpu.find_first_not_of("0123456789", 3) != std::string::npos || cpu.size() == 3)
            continue;
        add(cpu, "/cpufreq/scaling_cur_freq", "cpu_frequency_hertz", "Hz", SeriesKind::gauge, 1000);
        add(cpu, "/thermal_throttle/core_throttle_count", "cpu_core_throttles", "count", SeriesKind::counter, 1);
        add(cpu, "/thermal_throttle/package_throttle_count", "cpu_package_throttles", "count", SeriesKind::counter, 1);
    }
}

void FrequencyCollector::tick(std::int64_t, SampleSink& sink) {
    std::array<char, 64> buffer{};
    for (const auto& s : sources_) {
        if (s->broken) continue;
        const Reading reading = s->file.read(AT_FDCWD, s->path.c_str(), buffer, budget_);
        if (reading.vanished()) continue; // its CPU is offline
        const auto value = reading ? parse_single_number(reading.text) : Result<std::uint64_t>(0);
        if (!reading || !value) { // some drivers print "<unknown>" for ever
            sink.error(s->path + ": " + (reading ? value.error().text() : reading.why()) + "; it is not read again");
            s->broken = true;
            continue;
        }
        if (s->id == 0) s->id = sink.series(s->series, s->unit, s->kind, {{"cpu", s->cpu}});
        sink.add(s->id, static_cast<double>(*value) * s->factor);
    }
}

void FrequencyCollector::forget_series() {
    for (const auto& s : sources_) s->id = 0;
}

// --- the agent's own cost ---------------------------------------------------------------------------------------

void OverheadCollector::tick(std::int64_t, SampleSink& sink) {
    rusage use{};
    if (::getrusage(RUSAGE_SELF, &use) != 0) return sink.error("getrusage of the agent failed");
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    if (id_ == 0) id_ = sink.series("agent_cpu_seconds", "s", SeriesKind::counter, {});
    sink.add(id_, seconds(use.ru_utime) + seconds(use.ru_stime) + (counts_ ? counts_->cpu_seconds() : 0));
}

} // namespace perfrig
