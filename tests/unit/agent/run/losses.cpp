// What a run cannot help: whoever ends it died, or what an earlier run left can't be ended. The run is interrupted
// then, which may be tried again, never failed.
#include "agent/helper/descendants.hpp"
#include "tests/unit/agent/run/run_rig.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace perfrig;
using perfrig::testing::RunRig;

namespace {

// The guardian of the one run under way; -1 where none appears.
pid_t guardian_of(const RunRig& rig) {
    for (const Deadline deadline = Deadline::in(Milliseconds(20'000)); !deadline.passed(); ::usleep(2'000))
        for (const auto& process : all_processes(FileTree())) {
            const auto name = FileTree().read_line("/proc/" + std::to_string(process.pid) + "/comm");
            if (process.parent == rig.helper->helper_pid() && name && *name == "perfrig-guard") return process.pid;
        }
    return -1;
}

void wait_for_state(const RunRig& rig, const std::string& state) {
    for (const Deadline deadline = Deadline::in(Milliseconds(20'000)); !deadline.passed(); ::usleep(2'000))
        if (rig.sink.states().ends_with(state)) return;
}

} // namespace

TEST_CASE("a run whose guardian is killed is interrupted, in whatever phase it was, and the next one works") {
    for (const std::string phase : {"preparing", "warming", "measuring", "stopping"}) {
        CAPTURE(phase);
        RunRig rig;
        ResolvedRun run = rig.run();
        if (phase == "preparing") {
            run.services[0].command.argv[2] = "exec sleep " + rig.mark; // is never ready
            run.services[0].ready.within_ms = 60'000;
        }
        if (phase == "warming") run.pause_ms = 60'000;
        if (phase == "measuring") run.tools = {RunRig::tool("sleep 60; echo speed: 1")};
        if (phase == "stopping") {
            run.services[0].command.argv[2] = "trap '' TERM; echo ready; while :; do sleep " + rig.mark + "; done";
            run.services[0].stop_grace_ms = 60'000;
        }
        std::thread killer([&] {
            wait_for_state(rig, phase);
            ::kill(guardian_of(rig), SIGKILL);
        });
        const RunOutcome outcome = rig.work(run);
        killer.join();
        CHECK(outcome.state == "interrupted");
        CHECK(outcome.reason.find("guardian") != std::string::npos);
        CHECK(rig.nothing_left());
        CHECK_FALSE(outcome.helper_lost);
        CHECK(rig.work(rig.run(), 2).state == "completed");
    }
}

TEST_CASE("a run whose helper is killed is interrupted and says that the agent must end") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.pause_ms = 60'000;
    std::thread killer([&] {
        wait_for_state(rig, "warming");
        ::kill(rig.helper->helper_pid(), SIGKILL);
    });
    const RunOutcome outcome = rig.work(run);
    killer.join();
    CHECK(outcome.state == "interrupted");
    CHECK(outcome.helper_lost);
    CHECK(rig.nothing_left());
}

namespace {

// Keeps a process from being killed, as a disk that does not answer would: frozen by cgroup v1, no signal ends it.
class Frozen {
  public:
    explicit Frozen(const std::string& name) : folder_("/sys/fs/cgroup/freezer/perfrig-test-" + name) {
        std::error_code error;
        made_ = std::filesystem::create_directory(folder_, error);
    }
    ~Frozen() {
        thaw();
        for (int i = 0; made_ && ::rmdir(folder_.c_str()) != 0 && i < 1'000; ++i) ::usleep(5'000);
    }
    bool made() const { return made_; }
    void freeze(pid_t pid) const {
        write("/cgroup.procs", std::to_string(pid));
        write("/freezer.state", "FROZEN");
    }
    void thaw() const { write("/freezer.state", "THAWED"); }

  private:
    void write(const std::string& file, const std::string& text) const { std::ofstream(folder_ + file) << text; }
    std::string folder_;
    bool made_ = false;
};

} // namespace

TEST_CASE("a block stops where a run left a process that nobody can end, and is worked again once it is gone") {
    RunRig rig(true, [](HelperConfig& config) { config.time_to_end = Milliseconds(300); });
    const Frozen frozen(rig.mark);
    if (!frozen.made()) {
        MESSAGE("no freezer of cgroup v1 can be written here; skipped");
        return;
    }
    std::mutex mutex;
    std::vector<protocol::FromAgent> words;
    const auto said = [&]<class Word>(std::type_identity<Word>, std::size_t count) {
        for (const Deadline deadline = Deadline::in(Milliseconds(20'000)); !deadline.passed(); ::usleep(5'000)) {
            const std::lock_guard lock(mutex);
            if (static_cast<std::size_t>(std::ranges::count_if(
                    words, [](const auto& word) { return std::holds_alternative<Word>(word); })) >= count)
                return true;
        }
        return false;
    };
    const auto start = [&] {
        auto started = BlockWorker::open(rig.machine, rig.folder + "/block.json", rig.status).value();
        REQUIRE(started->start(
            [&](protocol::FromAgent word) {
                const std::lock_guard lock(mutex);
                words.push_back(std::move(word));
            },
            [](std::string) {}));
        return started;
    };
    auto worker = start();
    ResolvedRun leaves = rig.run();
    leaves.tools = {RunRig::tool("sleep 1; echo speed: 1")};
    worker->give(protocol::PrepareBlock{3, 7, {{11, 1, to_json(leaves)}, {12, 1, to_json(leaves)}}});
    for (const Deadline deadline = Deadline::in(Milliseconds(20'000)); !deadline.passed(); ::usleep(2'000))
        if (rig.sink.states(11).ends_with("measuring")) break;
    const auto service = rig.sink.of<protocol::ProcessStarted>(11);
    REQUIRE_FALSE(service.empty());
    frozen.freeze(static_cast<pid_t>(service[0].pid));
    CHECK(said(std::type_identity<protocol::BlockWorked>(), 1));
    REQUIRE(rig.sink.finding("leftovers"));
    CHECK(rig.sink.states(12) == "interrupted"); // nothing of it was started
    CHECK(rig.sink.end_reason(12).find("not clean") != std::string::npos);
    CHECK(rig.status.doing().starts_with("not clean: "));
    worker->give(protocol::EndBlock{3, 7});
    worker->give(protocol::PrepareBlock{4, 8, {{21, 1, to_json(rig.run())}}});
    CHECK(said(std::type_identity<protocol::BlockRefused>(), 1));
    {
        const std::lock_guard lock(mutex);
        CHECK(std::get<protocol::BlockRefused>(words.back()).unclean);
    }
    CHECK(rig.sink.states(21).empty());
    // An agent that is started anew knows it too, and says so instead of staying away.
    worker.reset();
    rig.status.set_dirty("");
    worker = start();
    CHECK(rig.status.doing().starts_with("not clean: what an earlier start"));
    worker->give(protocol::PrepareBlock{4, 8, {{21, 1, to_json(rig.run())}}});
    CHECK(said(std::type_identity<protocol::BlockRefused>(), 2));
    CHECK(rig.sink.states(21).empty());
    frozen.thaw();
    worker->give(protocol::PrepareBlock{4, 9, {{21, 1, to_json(rig.run())}}});
    CHECK(said(std::type_identity<protocol::BlockWorked>(), 2));
    CHECK(rig.sink.states(21).ends_with("completed"));
    CHECK(rig.status.doing() == "idle");
    worker.reset();
    CHECK(rig.nothing_left());
}

TEST_CASE("a readiness command is asked less and less often, always in the same cgroup") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.services[0].ready = {Readiness::Kind::command, "", {"/bin/sh", "-c", "test -e ready"}, 20'000};
    run.services[0].command.argv[2] = "sleep 2.5; touch ready; exec sleep " + rig.mark;
    CHECK(rig.work(run).state == "completed");
    std::size_t looks = 0;
    std::set<std::string> cgroups;
    for (const auto& started : rig.sink.of<protocol::ProcessStarted>())
        if (started.name == "ready-server") {
            ++looks;
            cgroups.insert(started.cgroup);
        }
    CHECK(looks >= 4); // at 0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5 s
    CHECK(looks <= 8);
    CHECK(cgroups.size() == 1);
}
