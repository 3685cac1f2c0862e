#include "agent/collectors/process_table.hpp"

#include "agent/collectors/proc_formats.hpp"

#include <charconv>
#include <sys/stat.h>

namespace perfrig {

namespace {

constexpr int deepest_cgroup = 8;

pid_t as_pid(std::string_view name) { // 0: not a number
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    return error == std::errc{} && end == name.data() + name.size() && pid > 0 ? pid : 0;
}

// Is the error one of a thing that is no longer there? (A process that ends while it is read answers ESRCH.)
bool gone(const FileTree& tree, const std::string& path, const Error& e) {
    return e.kind == ErrorKind::not_found || !tree.exists(path);
}

void add_cgroup(const FileTree& tree, const std::string& folder, int depth, std::set<pid_t>& into, SampleSink& errors) {
    const std::string file = folder + "/cgroup.procs";
    const auto text = tree.read(file, 4 << 20);
    if (!text) {
        if (!gone(tree, file, text.error())) errors.error(text.error().text());
        return;
    }
    const auto pids = parse_pid_lines(*text);
    if (!pids) return errors.error(file + ": " + pids.error().text());
    for (const std::int64_t pid : *pids) into.insert(static_cast<pid_t>(pid));
    struct stat folder_stat {};
    const bool readable = ::stat(tree.real_path(folder).c_str(), &folder_stat) == 0;
    if (!readable || folder_stat.st_nlink == 2 || depth == deepest_cgroup) return; // 2 links: no folders below
    const auto names = tree.list(folder);
    if (!names) return;
    for (const std::string& name : *names) {
        const std::string below = folder + "/" + name;
        if (::stat(tree.real_path(below).c_str(), &folder_stat) == 0 && S_ISDIR(folder_stat.st_mode))
            add_cgroup(tree, below, depth + 1, into, errors);
    }
}

} // namespace

void ProcessTable::refresh(SampleSink& errors) {
    const auto loadavg = tree_.read("/proc/loadavg");
    if (loadavg) {
        const auto last = parse_last_pid(*loadavg);
        if (!last)
            errors.error("/proc/loadavg: " + last.error().text());
        else if (*last == last_pid_)
            return; // nothing was born since
        else
            last_pid_ = *last;
    }
    const auto names = tree_.list("/proc");
    if (!names) return errors.error(names.error().text());
    std::map<pid_t, Entry> now;
    for (const std::string& name : *names) {
        const pid_t pid = as_pid(name);
        if (pid == 0) continue;
        if (const auto known = entries_.find(pid); known != entries_.end()) {
            now.insert(*known);
            continue;
        }
        const std::string path = "/proc/" + name + "/stat";
        const auto text = tree_.read(path);
        if (!text) continue; // ended since, or hidden from us: then it is not ours
        const auto stat = parse_stat(*text);
        if (!stat)
            errors.error(path + ": " + stat.error().text());
        else
            now[pid] = {static_cast<pid_t>(stat->parent), static_cast<pid_t>(stat->process_group)};
    }
    entries_ = std::move(now);
}

std::set<pid_t> ProcessTable::family(pid_t root, std::set<pid_t> members) const {
    for (bool grew = true; grew;) { // a child may have a lower pid than its parent, after the numbers wrapped
        grew = false;
        for (const auto& [pid, entry] : entries_)
            if (members.contains(entry.parent) || (root != 0 && entry.group == root))
                grew |= members.insert(pid).second;
    }
    return members;
}

std::set<pid_t> cgroup_processes(const FileTree& tree, const std::string& folder, SampleSink& errors) {
    std::set<pid_t> out;
    add_cgroup(tree, folder, 0, out, errors);
    return out;
}

} // namespace perfrig
