#include "controller/cli/default_profile.hpp"

#include <algorithm>
#include <tuple>

namespace perfrig::cli {

namespace {

// Cores as lists of their hardware threads, neighbours in package and cache next to each other.
std::vector<CpuList> cores_in_order(const Topology& topology, const CpuList& allowed) {
    std::vector<std::tuple<int, int, int>> order; // package, first CPU of the L3 group, CPU
    for (const int cpu : allowed) {
        const auto found = topology.cpus.find(cpu);
        if (found == topology.cpus.end()) continue;
        const CpuTopology& t = found->second;
        order.emplace_back(t.package.value_or(0), t.l3_group.empty() ? 0 : *t.l3_group.begin(), cpu);
    }
    std::sort(order.begin(), order.end());
    std::vector<CpuList> cores;
    CpuList taken;
    for (const auto& [package, cache, cpu] : order) {
        if (taken.contains(cpu)) continue;
        CpuList core = topology.cpus.at(cpu).smt_siblings.both(allowed);
        core.add(cpu);
        taken = taken.either(core);
        cores.push_back(std::move(core));
    }
    return cores;
}

} // namespace

Profile default_profile(const Topology& topology, const CpuList& allowed) {
    const std::vector<CpuList> cores = cores_in_order(topology, allowed);
    const auto take = [&](std::size_t first, std::size_t count) {
        CpuList out;
        for (std::size_t i = first; i < first + count && i < cores.size(); ++i) out = out.either(cores[i]);
        return out;
    };
    Profile profile;
    const std::size_t n = cores.size();
    if (n <= 1) {
        for (const char* role : {"app", "db", "load", "monitor"}) profile.roles[role] = take(0, 1);
        profile.share = {{"app", "db", "load", "monitor"}};
    } else if (n == 2) {
        profile.roles["app"] = take(0, 1);
        for (const char* role : {"db", "load", "monitor"}) profile.roles[role] = take(1, 1);
        profile.share = {{"db", "load", "monitor"}};
    } else if (n == 3) {
        profile.roles["app"] = take(0, 1);
        profile.roles["load"] = take(1, 1);
        for (const char* role : {"db", "monitor"}) profile.roles[role] = take(2, 1);
        profile.share = {{"db", "monitor"}};
    } else {
        const std::size_t rest = n - 1; // the last core is the monitor's
        const std::size_t load = std::max<std::size_t>(1, rest / 4), db = load, app = rest - load - db;
        profile.roles["app"] = take(0, app);
        profile.roles["db"] = take(app, db);
        profile.roles["load"] = take(app + db, load);
        profile.roles["monitor"] = take(n - 1, 1);
    }
    return profile;
}

} // namespace perfrig::cli
