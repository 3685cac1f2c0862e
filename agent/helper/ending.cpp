#include "agent/helper/ending.hpp"

#include "agent/helper/descendants.hpp"

#include <algorithm>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace perfrig {

RunEnded end_everything(const RunPlace& place, const RunName& run, const std::vector<pid_t>& spared, Deadline deadline,
                        const std::function<void()>& reap) {
    RunEnded ended;
    const auto fault = [&](const Error& error) {
        ended.clean = false;
        ended.why += (ended.why.empty() ? "" : "; ") + error.text();
    };
    const auto by_cgroup = place.cgroups.end_run(run, deadline, reap);
    if (by_cgroup)
        ended.killed += *by_cgroup;
    else
        fault(by_cgroup.error());
    // What left its cgroup (where its user may) or never had one.
    const auto by_descent = kill_descendants(place.tree, spared, deadline, reap);
    if (by_descent)
        ended.killed += *by_descent;
    else
        fault(by_descent.error());
    if (ended.clean) place.work.note_end(run);
    return ended;
}

std::int64_t end_noted(const FileTree& tree, const WorkBase::Noted& noted, const std::string& boot_id) {
    if (noted.boot_id != boot_id) return 0;
    std::int64_t killed = 0;
    constexpr int most_rounds = 20;
    for (int round = 0; round < most_rounds; ++round) {
        const auto all = all_processes(tree);
        bool any = false;
        const auto end = [&](const ProcessStat& process) {
            if (process.pid == ::getpid() || process.pid == ::getppid() || process.state == 'Z') return;
            if (!signal_exactly(tree, process, SIGKILL)) return;
            any = true;
            ++killed;
        };
        for (const auto& [pid, start_ticks] : noted.processes) {
            const auto leader = std::find_if(all.begin(), all.end(), [p = pid](const auto& q) { return q.pid == p; });
            // The number of a session is not given to a new process while the session has members. A leader with
            // another start is another process, and its session another's.
            if (leader != all.end() && leader->start_ticks != start_ticks) continue;
            if (leader != all.end())
                for (const auto& below : descendants_of(all, pid, {})) end(below);
            for (const auto& process : all)
                if (process.session == pid && process.start_ticks >= start_ticks) end(process);
        }
        if (!any) break;
        ::poll(nullptr, 0, 5);
    }
    return killed;
}

} // namespace perfrig
