// The profile that `perfrig up` writes for a machine it has never seen: roles on cores of their own where there are
// enough, siblings of a core never split between roles, and sharing said openly where there are not. A person is meant
// to edit it. Pure.
#pragma once

#include "common/placement/profile.hpp"
#include "common/topology/topology.hpp"

namespace perfrig::cli {

// `allowed`: the CPUs that this process may use at all. Roles: app, db, load, monitor.
//   1 core: everything shares it.   2: app | load, db, monitor.   3: app | load | db, monitor.
//   4 or more: one core for monitor, then app, load, db in the proportion 2 : 1 : 1, at least one each.
Profile default_profile(const Topology& topology, const CpuList& allowed);

} // namespace perfrig::cli
