#include "agent/helper/ending.hpp"

#include "agent/helper/descendants.hpp"
#include "agent/helper/leftovers.hpp"

#include <algorithm>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace perfrig {

std::string this_boot(const FileTree& tree) {
    const auto id = tree.read_line("/proc/sys/kernel/random/boot_id");
    return id ? *id : "unknown";
}

RunEnded end_everything(const RunPlace& place, const RunName& run, const std::vector<pid_t>& spared,
                        const std::function<void()>& reap) {
    RunEnded ended;
    const auto deadline = Deadline::in(place.time_to_end);
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
    // What is below us no more: another's death took it out of the line.
    const auto by_mark = kill_all(
        place.tree,
        [&] {
            std::vector<ProcessStat> marked;
            for (const auto& one : find_leftovers(place.tree, place.work.path(), place.work.workload().uid, spared))
                if (one.run == run) marked.push_back(one.process);
            return marked;
        },
        deadline, reap);
    if (by_mark)
        ended.killed += *by_mark;
    else
        fault(by_mark.error());
    if (ended.clean) place.work.note_end(run);
    return ended;
}

Result<SweepReport> sweep_runs(const RunPlace& place, const std::set<RunName>& guarded,
                               const std::vector<pid_t>& spared, const std::function<void()>& reap) {
    std::set<RunName> runs;
    for (const auto& run : place.cgroups.runs()) runs.insert(run);
    const auto noted = place.work.noted();
    for (const auto& note : noted) runs.insert(note.run);
    for (const auto& one : find_leftovers(place.tree, place.work.path(), place.work.workload().uid, spared))
        runs.insert(one.run);
    SweepReport report;
    std::string unclean; // one that can't be ended keeps none of the others alive
    for (const auto& run : runs) {
        if (guarded.contains(run)) continue;
        for (const auto& note : noted)
            if (note.run == run) report.killed += end_noted(place.tree, note, this_boot(place.tree));
        const RunEnded ended = end_everything(place, run, spared, reap);
        report.killed += ended.killed;
        if (ended.clean)
            report.runs.push_back(run.text());
        else
            unclean += (unclean.empty() ? "" : "; ") + run.text() + ": " + ended.why;
    }
    place.cgroups.remove_empty();
    if (!unclean.empty()) return fail(ErrorKind::unavailable, "end what is left of", "earlier runs", unclean);
    return report;
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
