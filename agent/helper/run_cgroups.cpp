#include "agent/helper/run_cgroups.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig {

namespace {
constexpr int longest_step_ms = 20;
}

Result<void> RunCgroups::make_folder(const std::string& path) const {
    if (::mkdir(tree_.real_path(path).c_str(), 0755) == 0 || errno == EEXIST) return {};
    return fail_errno(errno, "make the cgroup", path);
}

Result<void> RunCgroups::write(const std::string& path, std::string_view text) const {
    const UniqueFd fd(::open(tree_.real_path(path).c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd || ::write(fd.get(), text.data(), text.size()) < 0)
        return fail_errno(errno, "write '" + std::string(text) + "' to", path);
    return {};
}

std::vector<std::string> RunCgroups::bases() const {
    std::vector<std::string> all;
    if (plan_.kill != CgroupKill::none) all.push_back(kill_base());
    if (plan_.cpuset == CgroupCpuset::v1) all.push_back(cpuset_base());
    if (plan_.pids == CgroupPids::v1) all.push_back(pids_base());
    return all;
}

// v1: a new folder has no CPUs and no nodes, and refuses processes until it has both (cgroup-v1/cpusets.rst).
Result<void> RunCgroups::inherit_v1_cpuset(const std::string& folder) const {
    const std::string parent = folder.substr(0, folder.rfind('/'));
    for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
        PERFRIG_TRY(const std::string value, tree_.read_line(parent + file));
        PERFRIG_CHECK(write(folder + file, value));
    }
    return {};
}

void RunCgroups::prepare(const std::vector<int>& ours) {
    const auto strike = [&](const Error& error, bool kill_too) {
        plan_.why = error.text() + "; " + plan_.why;
        if (kill_too) plan_.kill = CgroupKill::none;
        if (kill_too || plan_.cpuset == CgroupCpuset::v2) plan_.enable_from.clear();
        if (!kill_too || plan_.cpuset == CgroupCpuset::v2) plan_.cpuset = CgroupCpuset::none;
        if (plan_.cpuset != CgroupCpuset::v2 && plan_.pids == CgroupPids::v2) plan_.pids = CgroupPids::none;
    };
    if (plan_.kill != CgroupKill::none)
        if (const auto made = make_folder(kill_base()); !made) strike(made.error(), true);
    if (plan_.cpuset == CgroupCpuset::v2) {
        const auto enable = [&]() -> Result<void> {
            if (plan_.move_self) {
                PERFRIG_CHECK(make_folder(plan_.kill_parent + "/agent"));
                for (const int pid : ours)
                    PERFRIG_CHECK(write(plan_.kill_parent + "/agent/cgroup.procs", std::to_string(pid)));
            }
            PERFRIG_CHECK(write(plan_.enable_from + "/cgroup.subtree_control", "+cpuset"));
            return write(kill_base() + "/cgroup.subtree_control", "+cpuset");
        };
        if (const auto enabled = enable(); !enabled) strike(enabled.error(), false);
    }
    if (plan_.pids == CgroupPids::v2 && (!write(plan_.enable_from + "/cgroup.subtree_control", "+pids") ||
                                         !write(kill_base() + "/cgroup.subtree_control", "+pids")))
        plan_.pids = CgroupPids::none; // each process is limited instead
    if (plan_.pids == CgroupPids::v1 && !make_folder(pids_base())) plan_.pids = CgroupPids::none;
    if (plan_.cpuset == CgroupCpuset::v1) {
        auto made = make_folder(cpuset_base());
        if (made) made = inherit_v1_cpuset(cpuset_base());
        if (!made) strike(made.error(), false);
    }
}

Result<void> RunCgroups::make_run(const RunName& run, std::int64_t most_processes) const {
    for (const auto& base : bases()) PERFRIG_CHECK(make_folder(base + "/" + run.text()));
    if (plan_.cpuset == CgroupCpuset::v1) PERFRIG_CHECK(inherit_v1_cpuset(cpuset_base() + "/" + run.text()));
    if (plan_.cpuset == CgroupCpuset::v2)
        PERFRIG_CHECK(write(kill_base() + "/" + run.text() + "/cgroup.subtree_control", "+cpuset"));
    if (plan_.pids != CgroupPids::none && most_processes > 0)
        PERFRIG_CHECK(write(pids_base() + "/" + run.text() + "/pids.max", std::to_string(most_processes)));
    return {};
}

std::optional<std::int64_t> RunCgroups::process_limit(const RunName& run) const {
    if (plan_.pids == CgroupPids::none) return std::nullopt;
    const auto text = tree_.read_line(pids_base() + "/" + run.text() + "/pids.max");
    std::int64_t most = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), most).ec != std::errc()) // "max"
        return std::nullopt;
    return most;
}

std::int64_t RunCgroups::refused_processes(const RunName& run) const { // "max 3"
    if (plan_.pids == CgroupPids::none) return 0;
    const auto text = tree_.read_line(pids_base() + "/" + run.text() + "/pids.events");
    std::int64_t count = 0;
    if (text && text->starts_with("max ")) std::from_chars(text->data() + 4, text->data() + text->size(), count);
    return count;
}

Result<void> RunCgroups::fill_cpuset(const std::string& folder, const CpuList& cpus, const CpuList& nodes) const {
    if (plan_.cpuset == CgroupCpuset::v1) PERFRIG_CHECK(inherit_v1_cpuset(folder));
    if (!cpus.empty()) PERFRIG_CHECK(write(folder + "/cpuset.cpus", cpus.text()));
    if (!nodes.empty()) PERFRIG_CHECK(write(folder + "/cpuset.mems", nodes.text()));
    return {};
}

Result<ProcessCgroup> RunCgroups::make_process(const RunName& run, const std::string& name, const CpuList& cpus,
                                               const CpuList& nodes) const {
    ProcessCgroup made;
    const auto join = [&](const std::string& folder) -> Result<void> {
        UniqueFd procs(::open(tree_.real_path(folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
        if (!procs) return fail_errno(errno, "open the cgroup", folder);
        made.procs.push_back(std::move(procs));
        made.folders.push_back(tree_.real_path(folder));
        return {};
    };
    const std::string below = "/" + run.text() + "/" + name;
    if (plan_.kill != CgroupKill::none) {
        PERFRIG_CHECK(make_folder(kill_base() + below));
        PERFRIG_CHECK(join(kill_base() + below));
    }
    if (plan_.pids == CgroupPids::v1) { // the run's own: its processes are counted together
        UniqueFd procs(
            ::open(tree_.real_path(pids_base() + "/" + run.text() + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
        if (!procs) return fail_errno(errno, "open the cgroup", pids_base() + "/" + run.text());
        made.procs.push_back(std::move(procs));
    }
    if (plan_.cpuset == CgroupCpuset::none) {
        made.cpuset_why = plan_.why;
        return made;
    }
    // Without a cpuset affinity still holds, so what fails here is told and not fatal.
    const std::string folder = cpuset_base() + below;
    auto filled = make_folder(folder);
    if (filled) filled = fill_cpuset(folder, cpus, nodes);
    if (filled && plan_.cpuset == CgroupCpuset::v1) filled = join(folder);
    if (filled)
        made.cpuset = plan_.cpuset;
    else
        made.cpuset_why = filled.error().text();
    return made;
}

std::vector<pid_t> RunCgroups::processes_below(const std::string& folder) const {
    std::vector<pid_t> pids;
    if (const auto text = tree_.read(folder + "/cgroup.procs", 16 << 20)) {
        const char* at = text->data();
        const char* const end = at + text->size();
        while (at < end) {
            pid_t pid = 0;
            const auto [next, error] = std::from_chars(at, end, pid);
            if (error == std::errc() && pid > 1) pids.push_back(pid); // 0: of another pid namespace
            at = std::find(next, end, '\n') + 1;
        }
    }
    const auto names = tree_.list(folder);
    for (const auto& name : names ? *names : std::vector<std::string>()) {
        struct stat info {};
        const std::string child = folder + "/" + name;
        if (::lstat(tree_.real_path(child).c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
        const auto below = processes_below(child);
        pids.insert(pids.end(), below.begin(), below.end());
    }
    return pids;
}

// One round of killing: at once by cgroup.kill, else frozen so that nothing forks meanwhile (v1: freezer.state, v2 from
// 5.2: cgroup.freeze), else one by one, which a later round repeats.
std::int64_t RunCgroups::kill_once(const std::string& folder) const {
    auto pids = processes_below(folder);
    if (write(folder + "/cgroup.kill", "1")) return static_cast<std::int64_t>(pids.size());
    const bool v1_freezer = tree_.exists(folder + "/freezer.state");
    const std::string freezer = folder + (v1_freezer ? "/freezer.state" : "/cgroup.freeze");
    const bool frozen = tree_.exists(freezer) && write(freezer, v1_freezer ? "FROZEN" : "1").has_value();
    if (frozen) pids = processes_below(folder);
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    if (frozen) static_cast<void>(write(freezer, v1_freezer ? "THAWED" : "0")); // v1: they die when thawed
    return static_cast<std::int64_t>(pids.size());
}

bool RunCgroups::remove_below(const std::string& folder) const {
    const std::string real = tree_.real_path(folder);
    if (::rmdir(real.c_str()) == 0 || errno == ENOENT) return true;
    const auto names = tree_.list(folder);
    for (const auto& name : names ? *names : std::vector<std::string>()) {
        struct stat info {};
        if (::lstat((real + "/" + name).c_str(), &info) == 0 && S_ISDIR(info.st_mode))
            remove_below(folder + "/" + name);
    }
    return ::rmdir(real.c_str()) == 0 || errno == ENOENT;
}

Result<std::int64_t> RunCgroups::end_run(const RunName& run, Deadline deadline,
                                         const std::function<void()>& between) const {
    std::int64_t killed = 0;
    for (int step_ms = 1;; step_ms = std::min(step_ms * 2, longest_step_ms)) {
        bool gone = true;
        std::string left;
        for (const auto& base : bases()) {
            const std::string folder = base + "/" + run.text();
            if (!tree_.exists(folder)) continue;
            killed = std::max(killed, kill_once(folder));
            if (remove_below(folder)) continue;
            gone = false;
            left = folder;
        }
        between();
        if (gone) return killed;
        if (deadline.passed())
            return fail(ErrorKind::timed_out, "empty the cgroup", left,
                        std::to_string(processes_below(left).size()) + " processes are still in it");
        ::poll(nullptr, 0, step_ms);
    }
}

std::vector<RunName> RunCgroups::runs() const {
    std::vector<RunName> all;
    for (const auto& base : bases()) {
        const auto names = tree_.list(base);
        for (const auto& name : names ? *names : std::vector<std::string>())
            if (const auto run = parse_run_name(name); run && std::find(all.begin(), all.end(), *run) == all.end())
                all.push_back(*run);
    }
    return all;
}

// A folder with processes in it refuses to go.
void RunCgroups::remove_empty() const {
    const auto used = bases();
    for (const auto& parent : plan_.parents) {
        const std::string base = parent + "/" + plan_.base_name;
        if (std::find(used.begin(), used.end(), base) == used.end()) remove_below(base);
    }
}

void RunCgroups::remove_base() const {
    for (const auto& base : bases()) ::rmdir(tree_.real_path(base).c_str());
}

} // namespace perfrig
