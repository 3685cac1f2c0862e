// Are these grants possible on this machine, and do they keep roles apart? Checked before anything starts, so that a
// wrong list is refused instead of measured; and, during measure, whether the kernel really gave what was granted.
#pragma once

#include "common/placement/profile.hpp"
#include "common/topology/topology.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

enum class PlacementFaultKind {
    empty_grant, // refusal: a role without CPUs
    no_such_cpu, // refusal: the machine has no such CPU
    offline_cpu, // refusal: it has, but it is offline
    overlap,     // refusal: two roles on one CPU that the profile doesn't let share
    shared,      // finding: two roles on one CPU, by the profile's leave
};

struct PlacementFault {
    PlacementFaultKind kind = PlacementFaultKind::empty_grant;
    bool refusal = true; // false: a finding that every run of this placement carries
    std::string role;
    std::string other_role; // for overlap and shared
    CpuList cpus;           // the CPUs that are at fault
    std::string message;    // names the role, its list, what the machine has
    std::string remedy;
};

std::string_view to_string(PlacementFaultKind kind); // "empty_grant", ...

// `roles` holds the grants of the roles that run in the same phase. All faults at once, by role name.
std::vector<PlacementFault> check_placement(const std::map<std::string, CpuList>& roles,
                                            const std::vector<std::set<std::string>>& share, const Topology& topology);

// True if every pair of roles that overlaps does so by the profile's leave, and every CPU is online.
bool placement_is_possible(const std::vector<PlacementFault>& faults);

// What an affinity read back from the kernel is worth. `outside` voids the run; `narrower` is a finding (honest
// programs narrow their own affinity). An empty observed list proves nothing and counts as outside.
enum class AffinityFit { inside, narrower, outside };
AffinityFit compare_affinity(const CpuList& granted, const CpuList& observed);
std::string_view to_string(AffinityFit fit);

} // namespace perfrig
