#include "agent/helper/cgroup.hpp"

#include "common/base/hash.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unistd.h>
#include <utility>

namespace perfrig {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const auto end = text.find(separator);
        if (end != 0) parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return parts;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned value = 0;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ptr == text.data() + i + 4) {
            out += static_cast<char>(value);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

struct Mount {
    bool v2 = false;
    std::string root; // of the hierarchy, that is mounted here
    std::string point;
    std::vector<std::string> options; // of the super block: v1's controllers are among them
};

// "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw": proc(5).
std::vector<Mount> cgroup_mounts(std::string_view mountinfo) {
    std::vector<Mount> mounts;
    for (const auto& line : split(mountinfo, '\n')) {
        const auto fields = split(line, ' ');
        const auto dash = std::find(fields.begin(), fields.end(), "-");
        if (fields.size() < 7 || fields.end() - dash < 4 || dash - fields.begin() < 6) continue;
        if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
        mounts.push_back({dash[1] == "cgroup2", unescape(fields[3]), unescape(fields[4]), split(dash[3], ',')});
    }
    return mounts;
}

// Where `path` (of /proc/self/cgroup) lies below a mount that shows the hierarchy from `root` on.
std::string folder_below(const Mount& mount, std::string_view path) {
    if (path.starts_with("/..")) return mount.point; // outside of our cgroup namespace
    if (mount.root != "/") {
        if (!path.starts_with(mount.root)) return mount.point;
        path.remove_prefix(mount.root.size());
    }
    return path.empty() || path == "/" ? mount.point : mount.point + std::string(path);
}

bool has(const std::vector<std::string>& list, std::string_view item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

bool writable(const FileTree& tree, const std::string& folder) {
    return ::access(tree.real_path(folder).c_str(), W_OK | X_OK) == 0 &&
           ::access(tree.real_path(folder + "/cgroup.procs").c_str(), W_OK) == 0;
}

// cgroup.kill came with 5.14; the root folder never shows it, so a root asks the kernel's version.
bool has_kill(const FileTree& tree, const std::string& folder) {
    if (tree.exists(folder + "/cgroup.kill")) return true;
    if (tree.exists(folder + "/cgroup.events")) return false; // no root, and no such file
    const auto release = tree.read_line("/proc/sys/kernel/osrelease");
    int major = 0, minor = 0;
    if (!release) return false;
    const char* const end = release->data() + release->size();
    const auto dot = std::from_chars(release->data(), end, major).ptr;
    if (dot != end) std::from_chars(dot + 1, end, minor);
    return major > 5 || (major == 5 && minor >= 14);
}

// The first folder that we may make children in: our own, or the root of the mount.
std::optional<std::string> parent_in(const FileTree& tree, const CgroupHierarchy& hierarchy) {
    for (const auto& folder : {hierarchy.own, hierarchy.mount})
        if (writable(tree, folder)) return folder;
    return std::nullopt;
}

bool is_true_root(const FileTree& tree, const std::string& folder) {
    return tree.exists(folder + "/cgroup.procs") && !tree.exists(folder + "/cgroup.events");
}

bool offers(const FileTree& tree, const std::string& folder, std::string_view controller) {
    const auto controllers = tree.read_line(folder + "/cgroup.controllers");
    return controllers && has(split(*controllers, ' '), controller);
}
bool offers_cpuset(const FileTree& tree, const std::string& folder) { return offers(tree, folder, "cpuset"); }

bool only_ours(const FileTree& tree, const std::string& folder, const std::vector<int>& ours) {
    const auto procs = tree.read(folder + "/cgroup.procs");
    if (!procs) return false;
    const auto lines = split(*procs, '\n');
    return std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return std::any_of(ours.begin(), ours.end(), [&](int pid) { return line == std::to_string(pid); });
    });
}

// Chooses where v2 groups go, and whether they can have the cpuset controller.
void choose_v2(const FileTree& tree, const CgroupHierarchy& v2, const std::vector<int>& ours, CgroupPlan& plan) {
    const auto parent = parent_in(tree, v2);
    if (!parent) {
        plan.why += "cgroup v2 at " + v2.own + " can't be written by this user; ";
        return;
    }
    plan.kill = CgroupKill::v2;
    plan.kill_parent = *parent;
    const auto use_cpuset = [&](const std::string& folder) {
        plan.cpuset = CgroupCpuset::v2;
        plan.kill_parent = plan.cpuset_parent = plan.enable_from = folder;
        if (!offers(tree, folder, "pids")) return;
        plan.pids = CgroupPids::v2;
        plan.pids_parent = folder;
    };
    if (offers_cpuset(tree, *parent) && is_true_root(tree, *parent)) return use_cpuset(*parent);
    if (offers_cpuset(tree, *parent) && only_ours(tree, *parent, ours)) {
        plan.move_self = true;
        return use_cpuset(*parent);
    }
    if (offers_cpuset(tree, v2.mount) && is_true_root(tree, v2.mount) && writable(tree, v2.mount))
        return use_cpuset(v2.mount);
    if (offers_cpuset(tree, *parent))
        plan.why += "other processes share our cgroup " + *parent +
                    ", so its controllers can't be enabled (run the agent as a service with Delegate=yes); ";
    else
        plan.why += "cgroup v2 at " + *parent + " has no cpuset controller; ";
}

const CgroupHierarchy* find_v1(const std::vector<CgroupHierarchy>& all, std::string_view controller) {
    for (const auto& hierarchy : all)
        if (!hierarchy.v2 && has(hierarchy.controllers, controller)) return &hierarchy;
    return nullptr;
}

} // namespace

std::string_view to_string(CgroupKill kill) {
    if (kill == CgroupKill::none) return "none";
    return kill == CgroupKill::freezer ? "freezer" : "v2";
}

std::string_view to_string(CgroupCpuset cpuset) {
    if (cpuset == CgroupCpuset::none) return "none";
    return cpuset == CgroupCpuset::v1 ? "v1" : "v2";
}

std::vector<CgroupHierarchy> parse_hierarchies(std::string_view mountinfo, std::string_view self_cgroup) {
    const auto mounts = cgroup_mounts(mountinfo);
    std::vector<CgroupHierarchy> all;
    for (const auto& line : split(self_cgroup, '\n')) { // "4:cpu,cpuacct:/path"; v2: "0::/path": cgroups(7)
        const auto first = line.find(':');
        const auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos || line.find('/', second) != second + 1) continue;
        CgroupHierarchy hierarchy;
        hierarchy.controllers = split(std::string_view(line).substr(first + 1, second - first - 1), ',');
        hierarchy.v2 = hierarchy.controllers.empty();
        const auto mount = std::find_if(mounts.begin(), mounts.end(), [&](const Mount& m) {
            return m.v2 == hierarchy.v2 && (m.v2 || has(m.options, hierarchy.controllers.front()));
        });
        if (mount == mounts.end()) continue; // known to the kernel, mounted nowhere
        hierarchy.mount = mount->point;
        hierarchy.own = folder_below(*mount, std::string_view(line).substr(second + 1));
        all.push_back(std::move(hierarchy));
    }
    return all;
}

CgroupPlan plan_cgroups(const FileTree& tree, std::string_view state_directory, const std::vector<int>& ours) {
    CgroupPlan plan;
    plan.base_name = "perfrig-" + sha256_hex(state_directory).substr(0, 8);
    const auto mountinfo = tree.read("/proc/self/mountinfo", 8 << 20);
    const auto self_cgroup = tree.read("/proc/self/cgroup");
    auto all = parse_hierarchies(mountinfo ? *mountinfo : "", self_cgroup ? *self_cgroup : "");
    if (all.empty()) {
        plan.why =
            "no cgroup hierarchy is mounted (mount /sys/fs/cgroup); runs are ended by process tree, pinned by affinity";
        return plan;
    }
    for (auto& hierarchy : all)
        if (!tree.exists(hierarchy.own)) hierarchy.own = hierarchy.mount;
    for (const auto& hierarchy : all)
        for (const auto& parent : {hierarchy.own, hierarchy.mount})
            if (!has(plan.parents, parent)) plan.parents.push_back(parent);
    for (const auto& hierarchy : all)
        if (hierarchy.v2) choose_v2(tree, hierarchy, ours, plan);
    const CgroupHierarchy* freezer = find_v1(all, "freezer");
    const bool kills = plan.kill == CgroupKill::v2 && has_kill(tree, plan.kill_parent);
    if (freezer && !kills && plan.cpuset != CgroupCpuset::v2) {
        if (const auto parent = parent_in(tree, *freezer)) {
            plan.kill = CgroupKill::freezer;
            plan.kill_parent = *parent;
        } else {
            plan.why += "the freezer at " + freezer->own + " can't be written by this user; ";
        }
    }
    const CgroupHierarchy* cpuset = find_v1(all, "cpuset");
    if (plan.cpuset == CgroupCpuset::none && cpuset) {
        if (const auto parent = parent_in(tree, *cpuset)) {
            plan.cpuset = CgroupCpuset::v1;
            plan.cpuset_parent = *parent;
        } else {
            plan.why += "the cpuset hierarchy at " + cpuset->own + " can't be written by this user; ";
        }
    }
    if (const CgroupHierarchy* pids = find_v1(all, "pids"); pids && plan.pids == CgroupPids::none)
        if (const auto parent = parent_in(tree, *pids)) {
            plan.pids = CgroupPids::v1;
            plan.pids_parent = *parent;
        }
    plan.why += plan.kill == CgroupKill::none
                    ? "runs are ended by process tree"
                    : "runs are ended by " + std::string(to_string(plan.kill)) + " in " + plan.kill_parent;
    plan.why += plan.cpuset == CgroupCpuset::none
                    ? ", pinned by affinity alone"
                    : ", pinned by cpuset " + std::string(to_string(plan.cpuset)) + " in " + plan.cpuset_parent;
    return plan;
}

} // namespace perfrig
