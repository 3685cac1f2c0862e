#include "agent/collectors/snapshot.hpp"

#include <array>
#include <charconv>
#include <map>
#include <unordered_map>

namespace perfrig {

namespace {

enum class Field {
    cpu_user,
    cpu_nice,
    cpu_system,
    cpu_irq,
    cpu_softirq,
    cpu_steal,
    cpu_iowait,
    cpu_idle,
    cpu_frequency,
    thread_user,
    thread_system,
    thread_wait,
    thread_voluntary,
    thread_involuntary,
    process_rss,
    memory_available,
    agent_cpu,
    other,
};

Field field_of(std::string_view name) {
    static const std::map<std::string_view, Field> fields = {
        {"cpu_user_seconds", Field::cpu_user},
        {"cpu_nice_seconds", Field::cpu_nice},
        {"cpu_system_seconds", Field::cpu_system},
        {"cpu_irq_seconds", Field::cpu_irq},
        {"cpu_softirq_seconds", Field::cpu_softirq},
        {"cpu_steal_seconds", Field::cpu_steal},
        {"cpu_iowait_seconds", Field::cpu_iowait},
        {"cpu_idle_seconds", Field::cpu_idle},
        {"cpu_frequency_hertz", Field::cpu_frequency},
        {"thread_cpu_user_seconds", Field::thread_user},
        {"thread_cpu_system_seconds", Field::thread_system},
        {"thread_run_queue_wait_seconds", Field::thread_wait},
        {"thread_voluntary_switches", Field::thread_voluntary},
        {"thread_involuntary_switches", Field::thread_involuntary},
        {"process_rss_bytes", Field::process_rss},
        {"memory_available_bytes", Field::memory_available},
        {"agent_cpu_seconds", Field::agent_cpu},
    };
    const auto found = fields.find(name);
    return found == fields.end() ? Field::other : found->second;
}

struct Slot {
    Field field = Field::other;
    int cpu = -1;
    std::string process, role, group;
    double last = 0, previous = 0;
    std::uint64_t last_tick = 0, previous_tick = 0; // numbers of the ticks that the two values are of
};

std::string label(const SeriesInfo& info, const char* name) {
    const auto found = info.labels.find(name);
    return found == info.labels.end() ? std::string() : found->second;
}

Slot slot_of(const SeriesInfo& info) {
    Slot slot;
    slot.field = field_of(info.name);
    const std::string cpu = label(info, "cpu");
    std::from_chars(cpu.data(), cpu.data() + cpu.size(), slot.cpu); // our own collector wrote it
    slot.process = label(info, "process");
    slot.role = label(info, "role");
    slot.group = thread_group_of(label(info, "comm"));
    return slot;
}

} // namespace

std::string thread_group_of(std::string_view comm) {
    const auto last = comm.find_last_not_of("0123456789");
    return std::string(last == std::string_view::npos ? comm : comm.substr(0, last + 1));
}

struct SnapshotBuilder::State {
    std::unordered_map<int, Slot> slots;
    std::uint64_t ticks = 0;
    std::int64_t last_ns = 0, previous_ns = 0, last_took_ns = 0;
    std::uint64_t errors = 0;

    double window() const { return ticks < 2 ? 0 : static_cast<double>(last_ns - previous_ns) / 1e9; }
    bool alive(const Slot& s) const { return s.last_tick == ticks; }
    // Per second over the last two ticks; 0 for what is in only one of them.
    double rate(const Slot& s) const {
        const bool both = alive(s) && s.previous_tick + 1 == ticks && window() > 0;
        return both ? (s.last - s.previous) / window() : 0;
    }
    void add_cpu(const Slot& s, CpuRates& cpu) const;
    void add_thread(const Slot& s, ThreadGroupRates& group) const;
};

SnapshotBuilder::SnapshotBuilder() : state_(std::make_unique<State>()) {}
SnapshotBuilder::~SnapshotBuilder() = default;

void SnapshotBuilder::add(const Tick& tick) {
    State& s = *state_;
    ++s.ticks;
    s.previous_ns = std::exchange(s.last_ns, tick.at_ns);
    s.last_took_ns = tick.took_ns;
    s.errors += tick.collector_errors.size();
    for (const SeriesInfo& info : tick.new_series) s.slots[info.id] = slot_of(info);
    for (const auto& [id, value] : tick.values) {
        const auto found = s.slots.find(id);
        if (found == s.slots.end()) continue;
        Slot& slot = found->second;
        slot.previous = std::exchange(slot.last, value);
        slot.previous_tick = std::exchange(slot.last_tick, s.ticks);
    }
    for (const int id : tick.ended_series) s.slots.erase(id);
}

void SnapshotBuilder::State::add_cpu(const Slot& s, CpuRates& cpu) const {
    switch (s.field) {
    case Field::cpu_user: cpu.user = rate(s); return;
    case Field::cpu_nice: cpu.nice = rate(s); return;
    case Field::cpu_system: cpu.system = rate(s); return;
    case Field::cpu_irq: cpu.irq = rate(s); return;
    case Field::cpu_softirq: cpu.softirq = rate(s); return;
    case Field::cpu_steal: cpu.steal = rate(s); return;
    case Field::cpu_iowait: cpu.iowait = rate(s); return;
    case Field::cpu_idle: cpu.idle = rate(s); return;
    case Field::cpu_frequency: cpu.frequency_hertz = s.last; return;
    default: return;
    }
}

void SnapshotBuilder::State::add_thread(const Slot& s, ThreadGroupRates& group) const {
    switch (s.field) {
    case Field::thread_user:
        ++group.threads;
        group.user_cpus += rate(s);
        return;
    case Field::thread_system: group.system_cpus += rate(s); return;
    case Field::thread_wait:
        group.run_queue_wait_per_second = group.run_queue_wait_per_second.value_or(0) + rate(s);
        return;
    case Field::thread_voluntary: group.voluntary_switches_per_second += rate(s); return;
    case Field::thread_involuntary: group.involuntary_switches_per_second += rate(s); return;
    default: return;
    }
}

ProcessSnapshot SnapshotBuilder::snapshot() const {
    const State& s = *state_;
    ProcessSnapshot out;
    out.at_ns = s.last_ns;
    out.window_seconds = s.window();
    out.tick_seconds = static_cast<double>(s.last_took_ns) / 1e9;
    out.errors_total = s.errors;
    std::map<int, CpuRates> cpus;
    std::map<std::array<std::string, 3>, ThreadGroupRates> groups; // by process, group, role
    std::map<std::array<std::string, 2>, double> memory;           // by process, role
    for (const auto& [id, slot] : s.slots) {
        if (!s.alive(slot)) continue;
        if (slot.field == Field::memory_available)
            out.memory_available_bytes = slot.last;
        else if (slot.field == Field::agent_cpu)
            out.agent_cpus = s.rate(slot);
        else if (slot.field == Field::process_rss)
            memory[{slot.process, slot.role}] += slot.last;
        else if (slot.field <= Field::cpu_frequency)
            s.add_cpu(slot, cpus[slot.cpu]);
        else if (slot.field <= Field::thread_involuntary)
            s.add_thread(slot, groups[{slot.process, slot.group, slot.role}]);
    }
    for (auto& [id, cpu] : cpus) {
        cpu.cpu = id;
        out.cpus.push_back(cpu);
    }
    for (auto& [key, group] : groups) {
        group.process = key[0];
        group.group = key[1];
        group.role = key[2];
        out.groups.push_back(std::move(group));
    }
    for (const auto& [key, bytes] : memory) out.memory.push_back({key[0], key[1], bytes});
    return out;
}

void SnapshotBuilder::forget_series() {
    State& s = *state_;
    s.slots.clear();
    s.ticks = 0;
}

} // namespace perfrig
