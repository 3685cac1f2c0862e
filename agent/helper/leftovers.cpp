#include "agent/helper/leftovers.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr std::size_t most_environment_bytes = 4 << 20; // more than the kernel lets exec pass by default

// "run-1-1" of "BASE/run-1-1/sub" or "BASE/run-1-1 (deleted)" (proc(5), cwd).
std::optional<RunName> run_of_path(std::string_view path, const std::string& base) {
    if (!path.starts_with(base) || path.size() <= base.size() || path[base.size()] != '/') return std::nullopt;
    path.remove_prefix(base.size() + 1);
    if (constexpr std::string_view gone = " (deleted)"; path.ends_with(gone)) path.remove_suffix(gone.size());
    return parse_run_name(path.substr(0, path.find('/')));
}

std::optional<RunName> run_of_environment(std::string_view environment, const std::string& base) {
    while (!environment.empty()) {
        const auto end = environment.find('\0');
        const std::string_view entry = environment.substr(0, end);
        if (entry.starts_with(run_marker) && entry.size() > run_marker.size() && entry[run_marker.size()] == '=')
            if (const auto run = run_of_path(entry.substr(run_marker.size() + 1), base)) return run;
        if (end == std::string_view::npos) break;
        environment.remove_prefix(end + 1);
    }
    return std::nullopt;
}

// The real user of a process; the owner of its folder in /proc is the effective one.
bool belongs_to(const FileTree& tree, const std::string& folder, uid_t uid) {
    const auto status = tree.read(folder + "/status");
    if (!status) return false;
    const auto line = status->find("\nUid:\t");
    return line != std::string::npos && status->substr(line + 6).starts_with(std::to_string(uid) + "\t");
}

std::string working_folder(const FileTree& tree, const std::string& folder) {
    char path[4096];
    const ssize_t n = ::readlink(tree.real_path(folder + "/cwd").c_str(), path, sizeof path);
    return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

std::set<pid_t> self_and_above(const std::vector<ProcessStat>& all) {
    std::map<pid_t, pid_t> parents;
    for (const auto& process : all) parents[process.pid] = process.parent;
    std::set<pid_t> line;
    for (pid_t pid = ::getpid(); pid > 0 && line.insert(pid).second; pid = parents[pid]) {
    }
    return line;
}

} // namespace

std::vector<Leftover> find_leftovers(const FileTree& tree, const std::string& work_base, uid_t uid,
                                     const std::vector<pid_t>& spared) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(work_base.c_str(), nullptr), std::free);
    const std::string real_base = real ? real.get() : work_base; // the kernel names a working folder without links
    const auto all = all_processes(tree);
    const auto not_ours = self_and_above(all);
    std::vector<Leftover> found;
    for (const auto& process : all) {
        if (process.state == 'Z' || process.state == 'X' || not_ours.contains(process.pid)) continue;
        if (std::find(spared.begin(), spared.end(), process.pid) != spared.end()) continue;
        const std::string folder = "/proc/" + std::to_string(process.pid);
        if (!belongs_to(tree, folder, uid)) continue;
        const auto environment = tree.read(folder + "/environ", most_environment_bytes);
        auto run = environment ? run_of_environment(*environment, work_base) : std::nullopt;
        if (!run && process.terminal == 0) run = run_of_path(working_folder(tree, folder), real_base);
        if (run) found.push_back({process, *run});
    }
    return found;
}

} // namespace perfrig
