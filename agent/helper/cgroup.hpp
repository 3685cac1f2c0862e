// Control groups: what this machine offers for the two things perfrig wants of them, found by reading alone.
//   kill:   everything a run started, however it forked and whatever session it took: cgroup v2, else v1's freezer.
//   cpuset: CPUs and memory nodes that hold for all of a process's descendants: v2's or v1's cpuset controller.
//   pids:   how many processes and threads a run may have: v1's pids controller, v2's where cpuset is v2's too.
// Hybrid machines (controllers in v1, an empty v2 tree beside them) get v2 for kill and v1 for cpuset.
// Layout: BASE = perfrig-<8 hex of the state directory's hash> below our own cgroup, or below the mount's root where
// our own can't be written or (v2) is shared with other processes; BASE/run-<id>-<attempt>/<process name>.
#pragma once

#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

enum class CgroupKill { none, freezer, v2 };
enum class CgroupCpuset { none, v1, v2 };
enum class CgroupPids { none, v1, v2 };
std::string_view to_string(CgroupKill kill);     // "none", "freezer", "v2"
std::string_view to_string(CgroupCpuset cpuset); // "none", "v1", "v2"

struct CgroupPlan {
    CgroupKill kill = CgroupKill::none;
    CgroupCpuset cpuset = CgroupCpuset::none;
    CgroupPids pids = CgroupPids::none;
    std::string why;           // for doctor: what was chosen and why not better
    std::string kill_parent;   // folder that BASE is made in, within the tree ("/sys/fs/cgroup/unified"); "" where none
    std::string cpuset_parent; // the same for cpuset; equal to kill_parent when both are v2
    std::string pids_parent;   // the same for pids
    std::string base_name;     // "perfrig-1a2b3c4d"
    std::vector<std::string> parents; // all folders, of any hierarchy, where an earlier start may have put its BASE
    std::string enable_from; // v2 cpuset: the topmost folder whose children must be given the controller; "" where none
    bool move_self = false;  // v2 in our own cgroup: our processes must first move to a leaf "agent" (no internal
                             // processes where controllers are enabled; Documentation/admin-guide/cgroup-v2.rst)
};

// Reads /proc/self/mountinfo and /proc/self/cgroup of the tree, and asks which folders are writable for the caller.
// `ours`: the processes that may be moved to a leaf; others in our own v2 cgroup keep controllers from being enabled.
CgroupPlan plan_cgroups(const FileTree& tree, std::string_view state_directory, const std::vector<int>& ours);

// One mounted hierarchy, with this process's place in it. Pure part of the above.
struct CgroupHierarchy {
    bool v2 = false;
    std::vector<std::string> controllers; // v1: "cpuset", "freezer", "name=systemd"; v2: filled from cgroup.controllers
    std::string mount;                    // "/sys/fs/cgroup/unified"
    std::string own;                      // our own folder below it, absolute; equals mount at the root
};
std::vector<CgroupHierarchy> parse_hierarchies(std::string_view mountinfo, std::string_view self_cgroup);

} // namespace perfrig
