#include "agent/helper/descendants.hpp"

#include "common/base/unique_fd.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <poll.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr int longest_step_ms = 20;
constexpr int most_stop_rounds = 50; // each stops what was forked before it was seen; a stopped process forks no more

template <class Number> bool read_number(std::string_view text, Number& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

bool alive(const ProcessStat& process) { return process.state != 'Z' && process.state != 'X'; }

} // namespace

// "pid (comm) state ppid pgrp session ... starttime": comm may hold spaces and parentheses; starttime is field 22.
std::optional<ProcessStat> parse_process_stat(std::string_view text) {
    const auto open = text.find(" (");
    const auto close = text.rfind(") ");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
    ProcessStat process;
    if (!read_number(text.substr(0, open), process.pid)) return std::nullopt;
    text.remove_prefix(close + 2);
    for (int field = 3; field <= 22; ++field) {
        const auto space = text.find(' ');
        const std::string_view value = text.substr(0, space);
        const bool good = field == 3    ? !value.empty() && ((process.state = value.front()), true)
                          : field == 4  ? read_number(value, process.parent)
                          : field == 6  ? read_number(value, process.session)
                          : field == 7  ? read_number(value, process.terminal)
                          : field == 22 ? read_number(value, process.start_ticks)
                                        : true;
        if (!good || (space == std::string_view::npos && field < 22)) return std::nullopt;
        if (space != std::string_view::npos) text.remove_prefix(space + 1);
    }
    return process;
}

std::optional<ProcessStat> read_process_stat(const FileTree& tree, pid_t pid) {
    const auto text = tree.read("/proc/" + std::to_string(pid) + "/stat", 8192);
    return text ? parse_process_stat(*text) : std::nullopt;
}

std::vector<ProcessStat> all_processes(const FileTree& tree) {
    std::vector<ProcessStat> all;
    const auto names = tree.list("/proc");
    for (const auto& name : names ? *names : std::vector<std::string>()) {
        pid_t pid = 0;
        if (!read_number(std::string_view(name), pid)) continue;
        if (const auto process = read_process_stat(tree, pid)) all.push_back(*process);
    }
    return all;
}

std::vector<ProcessStat> descendants_of(const std::vector<ProcessStat>& all, pid_t root,
                                        const std::vector<pid_t>& spared) {
    std::multimap<pid_t, const ProcessStat*> by_parent;
    for (const auto& process : all) by_parent.emplace(process.parent, &process);
    std::vector<ProcessStat> found;
    std::vector<pid_t> open{root};
    std::set<pid_t> seen{root}; // the list was not read in one instant: it may hold a circle
    while (!open.empty()) {
        const pid_t parent = open.back();
        open.pop_back();
        const auto [begin, end] = by_parent.equal_range(parent);
        for (auto it = begin; it != end; ++it) {
            const pid_t pid = it->second->pid;
            if (std::find(spared.begin(), spared.end(), pid) != spared.end() || !seen.insert(pid).second) continue;
            found.push_back(*it->second);
            open.push_back(pid);
        }
    }
    return found;
}

bool signal_exactly(const FileTree& tree, const ProcessStat& process, int signal) {
    UniqueFd pidfd;
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
#endif
    const auto now = read_process_stat(tree, process.pid);
    if (!now || now->start_ticks != process.start_ticks || !alive(*now)) return false;
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    if (pidfd) return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
#endif
    return ::kill(process.pid, signal) == 0;
}

Result<std::int64_t> kill_descendants(const FileTree& tree, const std::vector<pid_t>& spared, Deadline deadline,
                                      const std::function<void()>& reap) {
    const auto find = [&] { return descendants_of(all_processes(tree), ::getpid(), spared); };
    return kill_all(tree, find, deadline, reap);
}

Result<std::int64_t> kill_all(const FileTree& tree, const std::function<std::vector<ProcessStat>()>& find,
                              Deadline deadline, const std::function<void()>& reap) {
    std::set<std::pair<pid_t, std::uint64_t>> killed;
    int empty_looks = 0; // one look can miss a process whose parent ended while it was taken
    for (int step_ms = 1;; step_ms = std::min(step_ms * 2, longest_step_ms)) {
        reap();
        std::vector<ProcessStat> victims;
        std::set<pid_t> stopped;
        for (int round = 0; round < most_stop_rounds; ++round) {
            victims = find();
            std::erase_if(victims, [](const ProcessStat& p) { return !alive(p); });
            bool news = false;
            for (const auto& victim : victims)
                if (stopped.insert(victim.pid).second) news = signal_exactly(tree, victim, SIGSTOP) || news;
            if (!news) break;
        }
        for (const auto& victim : victims)
            if (signal_exactly(tree, victim, SIGKILL)) killed.emplace(victim.pid, victim.start_ticks);
        reap();
        empty_looks = victims.empty() ? empty_looks + 1 : 0;
        if (empty_looks == 2) return static_cast<std::int64_t>(killed.size());
        if (deadline.passed() && !victims.empty())
            return fail(ErrorKind::timed_out, "end the processes of a run",
                        "process " + std::to_string(victims.front().pid),
                        std::to_string(victims.size()) + " are still there");
        ::poll(nullptr, 0, step_ms);
    }
}

} // namespace perfrig
