#include "common/placement/placement.hpp"

#include <algorithm>

namespace perfrig {

namespace {

std::string granted(const std::string& role, const CpuList& cpus) {
    return "role '" + role + "' is granted CPUs " + cpus.text();
}

void check_role(const std::string& role, const CpuList& cpus, const Topology& topology,
                std::vector<PlacementFault>& faults) {
    if (cpus.empty()) {
        faults.push_back(
            {PlacementFaultKind::empty_grant,
             true,
             role,
             {},
             {},
             "role '" + role + "' is granted no CPUs; the machine has " + topology.online.text() + " online",
             "give '" + role + "' CPUs in the machine's profile"});
        return;
    }
    const CpuList exist = topology.present;
    const CpuList unknown = cpus.without(exist.either(topology.online));
    if (!unknown.empty())
        faults.push_back({PlacementFaultKind::no_such_cpu,
                          true,
                          role,
                          {},
                          unknown,
                          granted(role, cpus) + ", but the machine has no CPU " + unknown.text() + ": it has " +
                              exist.text() + ", online " + topology.online.text(),
                          "choose among " + topology.online.text() + " in the machine's profile"});
    const CpuList offline = cpus.without(unknown).without(topology.online);
    if (!offline.empty())
        faults.push_back(
            {PlacementFaultKind::offline_cpu,
             true,
             role,
             {},
             offline,
             granted(role, cpus) + ", but CPU " + offline.text() + " is offline: online are " + topology.online.text(),
             "bring CPU " + offline.text() + " online, or choose among " + topology.online.text()});
}

bool may_share(const std::string& a, const std::string& b, const std::vector<std::set<std::string>>& share) {
    return std::any_of(share.begin(), share.end(),
                       [&](const auto& group) { return group.contains(a) && group.contains(b); });
}

} // namespace

std::string_view to_string(PlacementFaultKind kind) {
    switch (kind) {
    case PlacementFaultKind::empty_grant: return "empty_grant";
    case PlacementFaultKind::no_such_cpu: return "no_such_cpu";
    case PlacementFaultKind::offline_cpu: return "offline_cpu";
    case PlacementFaultKind::overlap: return "overlap";
    case PlacementFaultKind::shared: return "shared";
    }
    return "unknown";
}

std::vector<PlacementFault> check_placement(const std::map<std::string, CpuList>& roles,
                                            const std::vector<std::set<std::string>>& share, const Topology& topology) {
    std::vector<PlacementFault> faults;
    for (const auto& [role, cpus] : roles) check_role(role, cpus, topology, faults);
    for (auto a = roles.begin(); a != roles.end(); ++a)
        for (auto b = std::next(a); b != roles.end(); ++b) {
            const CpuList common = a->second.both(b->second);
            if (common.empty()) continue;
            const bool allowed = may_share(a->first, b->first, share);
            faults.push_back(
                {allowed ? PlacementFaultKind::shared : PlacementFaultKind::overlap, !allowed, a->first, b->first,
                 common,
                 "roles '" + a->first + "' (CPUs " + a->second.text() + ") and '" + b->first + "' (CPUs " +
                     b->second.text() + ") share CPU " + common.text() +
                     (allowed ? ", as the machine's profile allows" : ""),
                 allowed
                     ? "give them CPUs of their own for numbers that don't disturb each other"
                     : "give them CPUs of their own, or list both in one group of `share` in the machine's profile"});
        }
    return faults;
}

bool placement_is_possible(const std::vector<PlacementFault>& faults) {
    return std::none_of(faults.begin(), faults.end(), [](const PlacementFault& f) { return f.refusal; });
}

AffinityFit compare_affinity(const CpuList& granted_cpus, const CpuList& observed) {
    if (observed.empty() || !granted_cpus.contains_all(observed)) return AffinityFit::outside;
    return observed == granted_cpus ? AffinityFit::inside : AffinityFit::narrower;
}

std::string_view to_string(AffinityFit fit) {
    switch (fit) {
    case AffinityFit::inside: return "inside";
    case AffinityFit::narrower: return "narrower";
    case AffinityFit::outside: return "outside";
    }
    return "unknown";
}

} // namespace perfrig
