// Whoever dies, by SIGKILL too: nothing of a run is left.
#include "agent/helper/cgroup.hpp"
#include "tests/unit/agent/helper/support.hpp"

using namespace perfrig;
using namespace perfrig::test;

namespace {

// Folders named as our runs' below the base of this state directory, in any hierarchy.
bool cgroups_gone(const HelperConfig& config) {
    const CgroupPlan plan = plan_cgroups(config.tree, config.state_directory, {});
    for (const auto& parent : {plan.kill_parent, plan.cpuset_parent})
        if (!parent.empty() && config.tree.exists(parent + "/" + plan.base_name)) return false;
    return true;
}

bool gone(pid_t pid) {
    const auto stat = read_process_stat(FileTree(), pid);
    return !stat || stat->state == 'Z';
}

// A process that plays the agent: a helper, a run, a daemon in it. Tells its helper's and guardian's pids, then waits
// to be killed.
struct PlayedAgent {
    pid_t agent = -1;
    pid_t helper = -1;
    pid_t guardian = -1;
    pid_t warden = -1;

    PlayedAgent(const HelperConfig& config, const std::string& mark) {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        const UniqueFd from(ends[0]);
        UniqueFd to(ends[1]);
        agent = ::fork();
        REQUIRE(agent >= 0);
        if (agent == 0) {
            auto client = fork_helper(config);
            if (!client) ::_exit(1);
            auto guard = client->begin_run({1, 1}, soon());
            if (!guard || !guard->spawn(daemon_order(mark), soon())) ::_exit(1);
            if (!guard->spawn(order({"sleep", mark}, "plain"), soon())) ::_exit(1);
            const pid_t pids[2] = {client->helper_pid(), children_of(client->helper_pid()).at(0)};
            if (::write(ends[1], pids, sizeof pids) != sizeof pids) ::_exit(1);
            for (;;) ::pause();
        }
        to.reset();
        pid_t pids[2] = {};
        REQUIRE(::read(from.get(), pids, sizeof pids) == sizeof pids);
        helper = pids[0];
        guardian = pids[1];
        warden = warden_of(helper);
        REQUIRE(eventually([&] { return marked(mark).size() == 4; }));
    }
    void kill_agent() {
        ::kill(agent, SIGKILL);
        ::waitpid(agent, nullptr, 0);
    }
    // All of them are stopped first: none sees another's end before its own.
    void kill_at_once(const std::vector<pid_t>& victims) {
        for (const int signal : {SIGSTOP, SIGKILL})
            for (const pid_t victim : victims) ::kill(victim, signal);
        for (const pid_t victim : victims)
            if (victim == agent) ::waitpid(agent, nullptr, 0);
    }
    ~PlayedAgent() {
        if (!gone(agent)) kill_agent();
    }
};

} // namespace

TEST_CASE("when the agent is killed its run ends, its helper exits and its cgroups go") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        const Folder folder;
        const auto config = config_in(folder.path, use_cgroups);
        const std::string mark = new_mark();
        PlayedAgent played(config, mark);
        played.kill_agent();
        CHECK(none_left(mark));
        CHECK(eventually([&] { return gone(played.helper) && gone(played.guardian); }));
        CHECK(cgroups_gone(config));
    }
}

TEST_CASE("signals that go to the whole group don't end helper and guardian before the agent") {
    const Folder folder;
    const auto config = config_in(folder.path);
    const std::string mark = new_mark();
    PlayedAgent played(config, mark);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        ::kill(played.helper, signal);
        ::kill(played.guardian, signal);
    }
    CHECK_FALSE(gone(played.helper));
    CHECK_FALSE(gone(played.guardian));
    CHECK(marked(mark).size() == 4);
    played.kill_agent();
    CHECK(none_left(mark));
    CHECK(eventually([&] { return gone(played.helper) && gone(played.guardian); }));
}

TEST_CASE("when a guardian is killed the helper ends its run and tells the agent") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        Bench bench(use_cgroups);
        auto guard = bench.client->begin_run({4, 2}, soon());
        REQUIRE(guard);
        auto other = bench.client->begin_run({5, 1}, soon());
        REQUIRE(other);
        const std::string mark = new_mark(), other_mark = new_mark();
        REQUIRE(guard->spawn(daemon_order(mark), soon()));
        REQUIRE(other->spawn(daemon_order(other_mark), soon()));
        REQUIRE(daemon_runs(mark));
        REQUIRE(daemon_runs(other_mark));
        const auto guardians = children_of(bench.client->helper_pid());
        REQUIRE(guardians.size() == 2);
        ::kill(guardians[0], SIGKILL); // the older, so the lower pid (unless numbers wrapped meanwhile)
        CHECK(none_left(mark));
        for (;;) { // the end of the outer shell may come first
            const auto event = guard->next_event(soon());
            if (event) continue;
            CHECK(event.error().kind == ErrorKind::unavailable);
            break;
        }
        std::vector<RunLost> lost;
        CHECK(eventually([&] {
            for (auto& one : bench.client->take_lost()) lost.push_back(one);
            return !lost.empty();
        }));
        REQUIRE(lost.size() == 1);
        CHECK(lost[0].run == RunName{4, 2});
        CHECK(lost[0].why == "its guardian was ended by signal 9 (Killed)");
        CHECK(marked(other_mark).size() == 3); // the neighbour is untouched
        CHECK(bench.client->begin_run({4, 3}, soon()));
    }
}

TEST_CASE("when the helper is killed the agent sees it, and the warden ends its runs with their guardians") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        Bench bench(use_cgroups);
        auto guard = bench.client->begin_run({4, 2}, soon());
        REQUIRE(guard);
        CHECK(bench.client->check_alive());
        const std::string mark = new_mark();
        REQUIRE(guard->spawn(daemon_order(mark), soon()));
        REQUIRE(guard->spawn(order({"sleep", mark}, "plain"), soon()));
        REQUIRE(eventually([&] { return marked(mark).size() == 4; }));
        ::kill(bench.client->helper_pid(), SIGKILL);
        CHECK(eventually([&] { return !bench.client->check_alive(); }));
        CHECK(none_left(mark));
        const auto refused = bench.client->begin_run({5, 1}, soon());
        REQUIRE(!refused);
        CHECK(refused.error().kind == ErrorKind::unavailable);
        // The guardian tells of no end but that of the shell which left the daemon: the others were the warden's doing.
        for (;;) {
            const auto event = guard->next_event(soon());
            if (!event) {
                CHECK(event.error().kind == ErrorKind::unavailable);
                break;
            }
            CHECK(event->name == "daemon");
        }
        CHECK(eventually([&] { return cgroups_gone(bench.config); }));
    }
}

TEST_CASE("helper and guardians killed together, with or without the agent, leave nothing that runs and no cgroup") {
    for (const bool use_cgroups : {true, false})
        for (const bool agent_too : {false, true}) {
            CAPTURE(use_cgroups);
            CAPTURE(agent_too);
            const Folder folder;
            const auto config = config_in(folder.path, use_cgroups);
            const std::string mark = new_mark();
            PlayedAgent played(config, mark);
            std::vector<pid_t> victims{played.helper, played.guardian};
            if (agent_too) victims.push_back(played.agent);
            played.kill_at_once(victims);
            CHECK(none_left(mark));
            CHECK(eventually([&] { return gone(played.warden); }));
            CHECK(cgroups_gone(config));
            CHECK(FileTree().list(config.work_base + "/.runs")->empty()); // and nothing is left for recovery
        }
}

TEST_CASE(
    "when the warden is killed the helper goes too, so that the agent stops, and guardians still end their runs") {
    Bench bench;
    auto guard = bench.client->begin_run({4, 2}, soon());
    REQUIRE(guard);
    const std::string mark = new_mark();
    REQUIRE(guard->spawn(daemon_order(mark), soon()));
    REQUIRE(daemon_runs(mark));
    const pid_t helper = bench.client->helper_pid();
    ::kill(warden_of(helper), SIGKILL);
    CHECK(eventually([&] { return !bench.client->check_alive(); }));
    const auto ended = guard->end(soon());
    REQUIRE(ended);
    CHECK(ended->clean);
    CHECK(marked(mark).empty());
    CHECK(eventually([&] { return gone(helper); }));
    CHECK(cgroups_gone(bench.config));
}

TEST_CASE("what a guardian started dies with it, though nobody is left to end the rest") {
    Bench bench(false);
    const std::string mark = new_mark();
    PlayedAgent played(bench.config, mark);
    played.kill_at_once({played.warden, played.helper, played.guardian, played.agent});
    CHECK(eventually([&] { return marked(mark).size() == 3; })); // all but the plain one: its daemons wait for a sweep
    CHECK(bench.client->sweep(true, soon()));
    CHECK(none_left(mark));
}

TEST_CASE("a sweep ends what agent, warden, helper and guardian left when all of them were killed") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        Bench bench(use_cgroups); // its state directory is where the played agent works too
        const std::string mark = new_mark();
        PlayedAgent played(bench.config, mark);
        played.kill_at_once({played.warden, played.helper, played.guardian, played.agent});
        REQUIRE(eventually([&] { return gone(played.helper) && gone(played.guardian); }));
        REQUIRE(marked(mark).size() >= 3); // what the guardian had started died with it, the daemon did not
        const auto report = bench.client->sweep(true, soon());
        REQUIRE(report);
        CHECK(report->runs == std::vector<std::string>{"run-1-1"});
        CHECK(report->killed >= 3);
        CHECK(none_left(mark));
        CHECK(::access((bench.config.work_base + "/run-1-1").c_str(), F_OK) != 0);
        const auto again = bench.client->sweep(true, soon());
        REQUIRE(again);
        CHECK(again->runs.empty());
    }
}

TEST_CASE("a sweep leaves the runs of its own agent alone") {
    Bench bench;
    auto guard = bench.client->begin_run({4, 2}, soon());
    REQUIRE(guard);
    const std::string mark = new_mark();
    REQUIRE(guard->spawn(order({"sleep", mark}), soon()));
    const auto report = bench.client->sweep(true, soon());
    REQUIRE(report);
    CHECK(report->runs.empty());
    CHECK(marked(mark).size() == 1);
    CHECK(::access(guard->directory().c_str(), F_OK) == 0);
}

TEST_CASE("a directory that can't be removed does not fail the sweep that an agent begins with") {
    Bench bench;
    auto guard = bench.client->begin_run({5, 1}, soon());
    REQUIRE(guard);
    const std::string deep = "i=0; while [ $i -lt 300 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done; echo done";
    CHECK(outcome_of(*guard, order({"sh", "-c", deep})).out == "done\n");
    REQUIRE(guard->end(soon()));
    auto other = bench.client->begin_run({6, 1}, soon());
    REQUIRE(other);
    REQUIRE(other->end(soon()));
    CHECK(eventually([&] {
        REQUIRE(bench.client->sweep(true, soon()));
        return ::access((bench.config.work_base + "/run-6-1").c_str(), F_OK) != 0; // once its guardian is reaped
    }));
    CHECK(::access((bench.config.work_base + "/run-5-1").c_str(), F_OK) == 0);
}
