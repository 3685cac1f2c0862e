#include "agent/run/run_checks.hpp"

#include "common/cmdline/cmdline.hpp"
#include "common/topology/topology.hpp"

#include <algorithm>
#include <set>
#include <unistd.h>

namespace perfrig {

namespace {

// Roles that something of this run really uses; only these need CPUs.
std::set<std::string> used_roles(const ResolvedRun& run) {
    std::set<std::string> roles;
    for (const ServiceSpec& service : run.services) roles.insert(service.role);
    for (const ToolSpec& tool : run.tools) roles.insert(tool.role);
    if (!run.build.empty() && !run.build_role.empty()) roles.insert(run.build_role);
    return roles;
}

// Every CPU that the profile gives to some role: what a role made by the experiment out of others may lie in.
CpuList all_granted(const Profile& profile) {
    CpuList all;
    for (const auto& [role, cpus] : profile.roles) all = all.either(cpus);
    return all;
}

bool may_share(const Profile& profile, const std::string& one, const std::string& other) {
    return std::ranges::any_of(profile.share,
                               [&](const auto& group) { return group.contains(one) && group.contains(other); });
}

// The profile's share groups, and what follows from them for roles that the experiment made out of the profile's: a
// made role may share CPUs with a role if every owner of those CPUs may.
std::vector<std::set<std::string>> share_groups(const Profile& profile, const std::map<std::string, CpuList>& grants) {
    auto groups = profile.share;
    for (const auto& [made, made_cpus] : grants) {
        if (profile.roles.contains(made)) continue;
        for (const auto& [other, other_cpus] : grants) {
            const CpuList common = made_cpus.both(other_cpus);
            if (other == made || common.empty()) continue;
            bool allowed = true, owned = false;
            for (const auto& [owner, owner_cpus] : profile.roles) {
                if (owner == other || owner_cpus.both(common).empty()) continue;
                owned = true;
                allowed = allowed && may_share(profile, owner, other);
            }
            if (owned && allowed) groups.push_back({made, other});
        }
    }
    return groups;
}

RunStep<CheckedRun> check_roles(const RunMachine& machine, const ResolvedRun& run) {
    CheckedRun checked;
    std::map<std::string, CpuList> grants;
    for (const std::string& role : used_roles(run)) {
        const auto granted = run.roles.find(role);
        if (granted == run.roles.end())
            return refused("role '" + role + "' has no CPUs: add it to the machine's profile");
        auto cpus = CpuList::parse(granted->second);
        if (!cpus) return refused("role '" + role + "': " + cpus.error().text());
        // The agent's own file has the last word: a controller can't widen what it grants.
        const auto own = machine.profile.roles.find(role);
        const CpuList most = own == machine.profile.roles.end() ? all_granted(machine.profile) : own->second;
        if (!most.contains_all(*cpus))
            return refused("role '" + role + "' asks for CPUs " + cpus->text() + ", this machine's profile grants " +
                           most.text() + ": change the profile in the agent's configuration");
        grants[role] = std::move(*cpus);
    }
    // The agent and its collectors keep to the monitor's CPUs in every run, so that role is always there.
    if (const CpuList monitor = machine.monitor_cpus(); !monitor.empty()) grants.emplace("monitor", monitor);
    auto topology = read_topology(machine.tree);
    if (!topology) return refused(topology.error().text());
    const auto faults = check_placement(grants, share_groups(machine.profile, grants), *topology);
    std::string why;
    for (const PlacementFault& fault : faults) {
        if (!fault.refusal)
            checked.findings.push_back(fault);
        else
            why += (why.empty() ? "" : "; ") + fault.message + (fault.remedy.empty() ? "" : " (" + fault.remedy + ")");
    }
    if (!why.empty()) return refused("placement: " + why);
    checked.roles = std::move(grants);
    return checked;
}

RunStep<void> check_kernel_args(const RunMachine& machine, const ResolvedRun& run) {
    if (run.kernel_args.empty()) return {};
    const auto line = machine.tree.read_line("/proc/cmdline");
    if (!line) return refused(line.error().text());
    std::string why;
    for (const std::string& text : kernel_arg_differences(run.kernel_args, *line))
        why += (why.empty() ? "" : "; ") + text;
    if (why.empty()) return {};
    return refused("the kernel was booted with other parameters than asked for: " + why +
                   "; this agent may not reboot the machine: boot it so, and queue the experiment again");
}

RunStep<void> probe(SpeculationKind kind, const std::optional<SpeculationWish>& wish, const std::string& of) {
    if (!wish) return {};
    const auto verdict = probe_speculation(kind, *wish);
    if (!verdict) return refused(of + ": " + verdict.error().text());
    if (!verdict->granted())
        return refused(of + ": speculation control " + std::string(to_string(kind)) + "=" +
                       std::string(to_string(*wish)) + " is not to be had here: " + verdict->words);
    return {};
}

RunStep<void> check_speculation(const Speculation& wish, const std::string& of) {
    PERFRIG_TRY(const SpeculationAsk ask, speculation_ask(wish, of));
    PERFRIG_CHECK(probe(SpeculationKind::indirect_branch, ask.indirect_branch, of));
    return probe(SpeculationKind::store_bypass, ask.store_bypass, of);
}

RunStep<void> check_tool(const RunMachine& machine, const ResolvedRun& run, const ToolSpec& spec) {
    const auto tool = make_tool(spec.tool, spec.options);
    if (!tool) return refused("tool '" + spec.name + "': " + tool.error().text());
    const auto call = (*tool)->invocation(ToolPhase::measure, Milliseconds(run.measure_ms));
    if (!call) return refused("tool '" + spec.name + "': " + call.error().text());
    if (spec.warms_up && run.warm_up_ms > 0) {
        const auto warm = (*tool)->invocation(ToolPhase::warm_up, Milliseconds(run.warm_up_ms));
        if (!warm) return refused("tool '" + spec.name + "', warm-up: " + warm.error().text());
    }
    const std::string& program = call->argv.at(0);
    if (!find_program(program, machine.search_path).empty()) return {};
    const std::string remedy = package_remedy(program);
    return refused("tool '" + spec.name + "' needs the program '" + program + "', which is not in " +
                   machine.search_path + (remedy.empty() ? "" : " (" + remedy + ")"));
}

} // namespace

std::string find_program(const std::string& name, const std::string& search_path) {
    if (name.find('/') != std::string::npos) return name; // may be built by the run itself
    for (std::size_t from = 0; from <= search_path.size();) {
        const std::size_t end = std::min(search_path.find(':', from), search_path.size());
        const std::string path = search_path.substr(from, end - from) + "/" + name;
        if (end > from && ::access(path.c_str(), X_OK) == 0) return path;
        from = end + 1;
    }
    return {};
}

std::string package_remedy(std::string_view program) {
    if (program == "wrk") return "install it: apt-get install wrk, or dnf install wrk";
    if (program == "pgbench")
        return "install it: apt-get install postgresql-contrib, or dnf install postgresql-contrib";
    if (program == "perf") return "install it: apt-get install linux-perf, or dnf install perf";
    return {};
}

RunStep<SpeculationAsk> speculation_ask(const Speculation& wish, const std::string& of) {
    SpeculationAsk ask;
    if (!wish.indirect_branch.empty()) {
        const auto parsed = parse_speculation_wish(wish.indirect_branch);
        if (!parsed) return refused(of + ": " + parsed.error().text());
        ask.indirect_branch = *parsed;
    }
    if (!wish.store_bypass.empty()) {
        const auto parsed = parse_speculation_wish(wish.store_bypass);
        if (!parsed) return refused(of + ": " + parsed.error().text());
        ask.store_bypass = *parsed;
    }
    return ask;
}

Milliseconds nominal_time(const ResolvedRun& run) {
    std::int64_t total = run.warm_up_ms + run.pause_ms + run.measure_ms;
    if (!run.build.empty()) total += run.build_within_ms;
    for (const ServiceSpec& service : run.services) total += service.ready.within_ms + service.stop_grace_ms;
    return Milliseconds(total);
}

RunStep<CheckedRun> check_run(const RunMachine& machine, const ResolvedRun& run) {
    for (const std::int64_t time : {run.warm_up_ms, run.pause_ms, run.measure_ms, run.build_within_ms})
        if (time < 0) return refused("a duration of the run is negative");
    const std::int64_t planned_s = (run.warm_up_ms + run.pause_ms + run.measure_ms) / 1000;
    if (planned_s > machine.profile.limits.run_seconds)
        return refused("its phases take " + std::to_string(planned_s) + " s, this machine's profile allows " +
                       std::to_string(machine.profile.limits.run_seconds) + " s for a run (limits.run_seconds)");
    if (run.services.empty() && run.tools.empty()) return refused("it has neither services nor tools");
    PERFRIG_CHECK(check_kernel_args(machine, run));
    PERFRIG_TRY(CheckedRun checked, check_roles(machine, run));
    for (const ServiceSpec& service : run.services)
        PERFRIG_CHECK(check_speculation(service.speculation, "service '" + service.name + "'"));
    for (const ToolSpec& tool : run.tools) {
        PERFRIG_CHECK(check_speculation(tool.speculation, "tool '" + tool.name + "'"));
        PERFRIG_CHECK(check_tool(machine, run, tool));
    }
    return checked;
}

} // namespace perfrig
