#include "agent/helper/warden.hpp"

#include "agent/helper/channel.hpp"
#include "agent/helper/descendants.hpp"
#include "agent/helper/ending.hpp"
#include "agent/helper/helper_process.hpp"
#include "agent/helper/process_setup.hpp"
#include "agent/helper/requests.hpp"
#include "common/base/log.hpp"

#include <cerrno>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr Milliseconds time_to_say{5'000};

// Reaps whatever ended; the helper's end when it was among them.
std::optional<ExitStatus> reap(pid_t helper) {
    std::optional<ExitStatus> ended;
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return ended;
        if (pid == helper) ended = ExitStatus::from_wait_status(status);
    }
}

// The guardians first, all at once with what is below them: one that lived on would report ends that were our doing.
bool end_all_runs(const RunPlace& place) {
    const auto reap_all = [] { reap(-1); };
    bool clean = true;
    const auto killed = kill_descendants(place.tree, {}, Deadline::in(place.time_to_end), reap_all);
    if (!killed) log::error(killed.error().text());
    clean = killed.has_value();
    const auto report = sweep_runs(place, {}, {}, reap_all);
    if (!report) log::error(report.error().text());
    return clean && report;
}

} // namespace

int run_warden(const HelperConfig& config, const User& workload, UniqueFd agent) {
    const auto refuse = [&](const Error& error) {
        static_cast<void>(send_packet(agent.get(), error_text(0, error), {}, Deadline::in(time_to_say)));
        return 1;
    };
    auto signals = set_up_process(config.tree, "perfrig-warden", {agent.get()});
    if (!signals) return refuse(signals.error());
    // The workload's groups, for touching files as its user; root itself needs none.
    if (::geteuid() == 0 && ::setgroups(workload.groups.size(), workload.groups.data()) != 0)
        return refuse(fail_errno(errno, "take the groups of", workload.name));
    const auto work = WorkBase::open(config.work_base, workload);
    if (!work) return refuse(work.error());
    const std::vector<int> ours{::getpid(), ::getppid()};
    CgroupPlan plan;
    plan.why = "cgroups are switched off by configuration";
    if (config.use_cgroups) plan = plan_cgroups(config.tree, config.state_directory, ours);
    RunCgroups cgroups(config.tree, plan);
    cgroups.prepare(ours);
    const RunPlace place{config.tree, cgroups, *work, config.time_to_end};
    int ends[2]; // the helper reads the end of file that our death makes
    if (::pipe2(ends, O_CLOEXEC) != 0) return refuse(fail_errno(errno, "start the helper", ""));
    const UniqueFd life_line(ends[1]);
    UniqueFd watched(ends[0]);
    const pid_t helper = ::fork();
    if (helper < 0) return refuse(fail_errno(errno, "start the helper", ""));
    if (helper == 0) ::_exit(run_helper({config, place, workload, std::move(watched), std::move(agent)}));
    watched.reset();
    agent.reset(); // the helper's alone: the agent sees at once when the helper is gone
    for (;;) {
        if (const auto ended = reap(helper)) {
            if (ended->signal == 0) return ended->code;
            log::error("the helper was ended by " + ended->text() + ": everything of its runs is ended");
            const bool clean = end_all_runs(place);
            cgroups.remove_base();
            return clean ? 0 : 1;
        }
        pollfd ready{signals->get(), POLLIN, 0};
        ::poll(&ready, 1, -1);
        drain_signals(signals->get());
    }
}

} // namespace perfrig
