// CPU time of the roles' CPUs that none of the run's processes used.
#include "common/base/cpu_list.hpp"
#include "controller/analysis/derive.hpp"
#include "controller/analysis/used_cpu.hpp"

#include <algorithm>
#include <cstdio>

namespace perfrig::analysis {

namespace {

// Roles that share CPUs, and what they have together.
struct Group {
    std::set<std::string> roles;
    CpuList cpus;

    std::string names() const {
        std::string out;
        for (const std::string& role : roles) out += (out.empty() ? "" : ", ") + role;
        return out;
    }
};

std::vector<Group> groups_of(const std::map<std::string, std::string>& roles) {
    std::vector<Group> out;
    for (const auto& [role, list] : roles) {
        const auto cpus = CpuList::parse(list);
        if (!cpus || cpus->empty()) continue; // derive_roles says so
        Group whole{{role}, *cpus};
        std::erase_if(out, [&](const Group& other) {
            if (other.cpus.both(whole.cpus).empty()) return false;
            whole.roles.insert(other.roles.begin(), other.roles.end());
            whole.cpus = whole.cpus.either(other.cpus);
            return true;
        });
        out.push_back(std::move(whole));
    }
    return out;
}

// CPU seconds that the kernel booked to processes, or to interrupts, on these CPUs in the window; nothing where one of
// them was not read.
struct Booked {
    double processes = 0;
    Window window;
};
std::optional<Booked> booked(const Derivation& d, const CpuList& cpus, const Window& window) {
    Total all;
    for (const char* mode : {"user", "nice", "system"}) {
        int found = 0;
        for (const model::Series* series : d.index.named("cpu_" + std::string(mode) + "_seconds")) {
            const auto cpu = CpuList::parse(label(*series, "cpu"));
            if (!cpu || !cpus.contains_all(*cpu)) continue;
            const auto reading = read_counter(*series, window);
            if (!reading) return std::nullopt;
            all.add(*reading);
            ++found;
        }
        if (found < static_cast<int>(cpus.size())) return std::nullopt;
    }
    return Booked{all.sum, *all.window};
}

std::map<std::string, UsedCpu> used_by(const Derivation& d, const Group& group, const Window& window) {
    return used_cpu(d.index, window,
                    [&](const model::Series& series) { return group.roles.contains(label(series, "role")); });
}

// A tool ends before the phase does, and what it used after its last reading is not known: so the window ends there,
// where at least half of it is left.
std::int64_t common_end(const std::map<std::string, UsedCpu>& all, const Window& window) {
    std::int64_t end = window.end_ns;
    for (const auto& [process, used] : all)
        if (used.last_ns - window.start_ns >= (window.end_ns - window.start_ns) / 2) end = std::min(end, used.last_ns);
    return end;
}

std::string percent(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
    return text;
}

void derive_group(Derivation& d, const Group& group) {
    auto cpu = booked(d, group.cpus, d.window);
    if (!cpu) return; // derive_roles says which reading is missing
    auto used = used_by(d, group, cpu->window);
    if (const std::int64_t end = common_end(used, cpu->window); end < cpu->window.end_ns) {
        cpu = booked(d, group.cpus, {cpu->window.start_ns, end});
        if (!cpu) return;
        used = used_by(d, group, cpu->window);
    }
    for (const model::Process& process : d.data.processes) {
        const bool lived = process.started_ns < cpu->window.end_ns &&
                           process.ended_ns.value_or(cpu->window.end_ns) > cpu->window.start_ns;
        if (lived && group.roles.contains(process.role) && !used.contains(process.name))
            return d.missing("cpu_other_ratio", group.names(),
                             "the CPU seconds of " + process.name + " were not read in the window");
    }
    double own = 0;
    for (const auto& [process, one] : used) own += one.seconds();
    if (group.roles.contains("monitor"))
        for (const model::Series* series : d.index.named("agent_cpu_seconds"))
            if (const auto grown = growth(*series, cpu->window)) own += grown->by;
    const double other = std::max(0.0, cpu->processes - own);
    const double capacity = static_cast<double>(group.cpus.size()) * cpu->window.seconds();
    const double of_capacity = other / capacity, of_busy = cpu->processes > 0 ? other / cpu->processes : 0;
    for (const std::string& role : group.roles) {
        d.metric("cpu_other_ratio", {{"role", role}, {"of", "capacity"}}, "ratio", of_capacity, cpu->window);
        d.metric("cpu_other_ratio", {{"role", role}, {"of", "busy"}}, "ratio", of_busy, cpu->window);
    }
    const bool only_monitor = group.roles == std::set<std::string>{"monitor"}; // nothing of the result runs there
    const bool much =
        of_capacity > other_capacity_limit || (of_capacity > other_resolution && of_busy > other_busy_limit);
    if (only_monitor || !much) return;
    d.find("cpu_other", model::Severity::warning, group.names(),
           "CPUs " + group.cpus.text() + " of " + group.names() + " were used by others too, " + percent(of_capacity) +
               " of their time and " + percent(of_busy) +
               " of what was busy: busy ratios and service demand are that much too high",
           {{"cpus", group.cpus.text()},
            {"window_seconds", cpu->window.seconds()},
            {"busy_seconds", cpu->processes},
            {"own_seconds", own},
            {"other_seconds", other}});
}

} // namespace

void derive_other(Derivation& d) {
    for (const Group& group : groups_of(d.data.roles)) derive_group(d, group);
}

} // namespace perfrig::analysis
