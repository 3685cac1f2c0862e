#include "agent/run/run_checks.hpp"
#include "tests/unit/agent/run/run_rig.hpp"

#include "common/base/file_tree.hpp"

#include <thread>

using namespace perfrig;
using perfrig::testing::RunRig;

TEST_CASE("a run goes through its states, and its evidence is recorded") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.warm_up_ms = 300;
    run.pause_ms = 50;
    const RunOutcome outcome = rig.work(run);
    CHECK(outcome.reason == "");
    CHECK(rig.sink.states() == "preparing warming measuring stopping uploading completed");
    std::string phases;
    for (const auto& phase : rig.sink.of<protocol::PhaseStarted>()) phases += phase.name + " ";
    CHECK(phases == "start warm_up pause measure stop ");
    CHECK(rig.sink.of<protocol::PhaseEnded>().size() == 5);
    const auto metrics = rig.sink.of<protocol::MetricRead>();
    REQUIRE(metrics.size() == 1); // warm-up's is not used
    CHECK(metrics[0].name == "speed");
    CHECK(metrics[0].value == 42.5);
    CHECK(metrics[0].window_end_ns > metrics[0].window_start_ns);
    CHECK(rig.sink.of<protocol::ProcessStarted>().size() == 3); // server, meter twice
    CHECK(rig.sink.of<protocol::ProcessEnded>().size() == 3);
    CHECK(rig.sink.of<protocol::ProcessObserved>().size() == 2);
    for (const auto& observed : rig.sink.of<protocol::ProcessObserved>())
        CHECK(observed.observed_cpus == rig.machine.profile.roles.at("app").text());
    CHECK(rig.sink.finding("placement") == nullptr);
    REQUIRE(rig.sink.finding("shared_cpus")); // app and load share, by the profile's leave: every run says so
    CHECK(rig.sink.of<protocol::EnvironmentTaken>().size() == 2);
    CHECK(rig.nothing_left());
}

TEST_CASE("samples frame the measure phase: a tick at its start and one at its end, every series declared before") {
    RunRig rig;
    rig.work(rig.run());
    std::int64_t start = 0, end = 0;
    int ordinal = 0;
    std::set<std::uint32_t> declared;
    for (const auto& event : rig.sink.events()) {
        if (const auto* phase = std::get_if<protocol::PhaseStarted>(&event.body); phase && phase->name == "measure") {
            start = phase->start_ns;
            ordinal = phase->ordinal;
        }
        if (const auto* phase = std::get_if<protocol::PhaseEnded>(&event.body);
            phase && phase->ordinal == ordinal && end == 0)
            end = phase->end_ns;
        if (const auto* series = std::get_if<protocol::SeriesDeclared>(&event.body)) declared.insert(series->id);
    }
    const auto frames = rig.sink.frames();
    REQUIRE(frames.size() >= 2);
    std::int64_t first = INT64_MAX, last = 0;
    for (const auto& frame : frames) {
        if (frame.time_ns < start || frame.time_ns > end) continue;
        first = std::min(first, frame.time_ns);
        last = std::max(last, frame.time_ns);
        for (const auto& sample : frame.samples) CHECK(declared.contains(sample.series));
    }
    CHECK(first - start < 100'000'000);
    CHECK(end - last < 100'000'000);
}

TEST_CASE("tool output is kept raw, and what artifacts are offered lies in the store with that hash") {
    RunRig rig;
    rig.work(rig.run());
    const auto offers = rig.sink.of<protocol::ArtifactOffered>();
    const auto stored = rig.machine.artifacts.list().value();
    REQUIRE(offers.size() == stored.size());
    REQUIRE(offers.size() == 2);
    for (const auto& artifact : stored) {
        const auto content = read_file(artifact.path).value();
        bool offered = false;
        for (const auto& offer : offers)
            offered |= offer.name == artifact.name && offer.sha256 == sha256_hex(content) &&
                       offer.size == static_cast<std::int64_t>(content.size());
        CHECK(offered);
        if (artifact.name == "tools/meter.measure.stdout") CHECK(content == "speed: 42.5\n");
    }
}

TEST_CASE("a service that dies before it is ready fails the run with its last words") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.services = {RunRig::service("echo no such database >&2; exit 3")};
    CHECK(rig.work(run).state == "failed");
    CHECK(rig.sink.states() == "preparing stopping uploading failed");
    CHECK(rig.sink.end_reason().find("exit 3") != std::string::npos);
    CHECK(rig.sink.end_reason().find("no such database") != std::string::npos);
}

TEST_CASE("a service that never gets ready fails the run at its own deadline") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.services = {RunRig::service("echo still thinking; exec sleep " + rig.mark)};
    run.services[0].ready.within_ms = 300;
    const auto begin = std::chrono::steady_clock::now();
    CHECK(rig.work(run).state == "failed");
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    CHECK(rig.sink.end_reason().find("not ready within 300ms") != std::string::npos);
    CHECK(rig.sink.end_reason().find("still thinking") != std::string::npos);
    CHECK(rig.nothing_left());
}

TEST_CASE("what the build or the warm-up left running is told with its name, and what has ended is not") {
    RunRig rig;
    ResolvedRun run = rig.run();
    const std::string leave = "sleep " + rig.mark + " >/dev/null 2>&1 & ";
    run.build = {{{"/bin/sh", "-c", leave}, {}, {}}, {{"/bin/true"}, {}, {}}};
    run.build_role = "app";
    run.tools = {RunRig::tool("[ $PERFRIG_PHASE = measure ] || { " + leave + "}; sleep 0.3; echo speed: 1")};
    run.warm_up_ms = 300;
    CHECK(rig.work(run).state == "completed");
    std::string told;
    for (const protocol::Found& one : rig.sink.of<protocol::Found>())
        if (one.check_name == "left_running") {
            told += one.subject + " ";
            CHECK(one.message.find("1 processes that it started have not: sleep") != std::string::npos);
        }
    CHECK(told == "build-1 meter ");
    CHECK(rig.nothing_left());
}

TEST_CASE("a service that dies during measure fails the run") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.services = {RunRig::service("echo ready; sleep 0.4; kill -9 $$")};
    run.tools = {RunRig::tool("sleep 30; echo speed: 1")};
    run.measure_ms = 30'000;
    CHECK(rig.work(run).state == "failed");
    CHECK(rig.sink.end_reason().find("signal 9") != std::string::npos);
    CHECK(rig.sink.of<protocol::MetricRead>().empty());
}

TEST_CASE("a tool that hangs is killed when its own time is over") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.tools = {RunRig::tool("exec sleep " + rig.mark)};
    run.tools[0].options["at_most"] = "500ms";
    CHECK(rig.work(run).state == "failed");
    CHECK(rig.sink.end_reason().find("hung") != std::string::npos);
    CHECK(rig.nothing_left());
}

TEST_CASE("a tool that prints garbage, or fails in warm-up, fails the run") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.tools = {RunRig::tool("echo what?")};
    CHECK(rig.work(run, 1).state == "failed");
    CHECK(rig.sink.end_reason(1).find("meter") != std::string::npos);
    run.warm_up_ms = 50;
    run.tools = {RunRig::tool("echo speed: 1; exit 1")};
    CHECK(rig.work(run, 2).state == "failed");
    CHECK(rig.sink.end_reason(2).find("warm-up") != std::string::npos);
}

TEST_CASE("a build runs first, in the run's directory, with its files; one that fails ends the run with its output") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.files = {{"tool.sh", "#!/bin/sh\necho speed: 7\n"}, {"data/x", "dir ${run.directory}"}};
    run.build = {{{"/bin/sh", "-c", "test -x tool.sh && grep -q \"$PWD\" data/x && echo built > result"}, {}, ""}};
    run.tools = {RunRig::tool("test -f result && ./tool.sh")};
    CHECK(rig.work(run, 1).reason == "");
    CHECK(rig.sink.of<protocol::MetricRead>(1).at(0).value == 7.0);
    run.build = {{{"/bin/sh", "-c", "echo undefined reference >&2; exit 2"}, {}, ""}};
    CHECK(rig.work(run, 2).state == "failed");
    CHECK(rig.sink.end_reason(2).find("undefined reference") != std::string::npos);
    CHECK(rig.sink.of<protocol::MetricRead>(2).empty());
}

TEST_CASE("what can't work here is refused before anything starts, and the reason says what to do") {
    RunRig rig;
    const auto refused = [&](const ResolvedRun& run, const std::string& why) {
        static std::int64_t id = 100;
        CHECK(rig.work(run, ++id).state == "refused");
        INFO(rig.sink.end_reason(id));
        CHECK(rig.sink.states(id) == "refused");
        CHECK(rig.sink.end_reason(id).find(why) != std::string::npos);
        CHECK(rig.sink.of<protocol::ProcessStarted>(id).empty());
    };
    ResolvedRun run = rig.run();
    run.kernel_args = {{"perfrig_no_such_parameter", "on"}};
    refused(run, "perfrig_no_such_parameter");
    refused(run, "may not reboot");
    run = rig.run();
    run.services[0].role = "db";
    refused(run, "db");
    run = rig.run();
    run.roles["app"] = "0-4095";
    refused(run, "profile grants");
    run = rig.run();
    run.tools[0].options["metrics"] = 7;
    refused(run, "metrics");
    run = rig.run();
    run.tools[0].options["command"] = Json::array({"perfrig-no-such-program"});
    refused(run, "perfrig-no-such-program");
    run = rig.run();
    run.services[0].speculation.indirect_branch = "sometimes";
    refused(run, "sometimes");
    run = rig.run();
    run.measure_ms = 100LL * 24 * 3600 * 1000;
    refused(run, "limits.run_seconds");
    rig.machine.profile.roles["app"] = {4095};
    run = rig.run();
    refused(run, "4095");
}

TEST_CASE(
    "a role made out of the profile's roles is granted what they are granted, and shares what all of them share") {
    RunRig rig;
    const CpuList cpu = rig.machine.profile.roles.at("app");
    const auto outcome = [&] {
        ResolvedRun run = rig.run();
        run.roles["pair"] = cpu.text();
        run.services.clear();
        run.tools[0].role = "pair";
        return check_run(rig.machine, run);
    };
    REQUIRE(outcome().has_value());
    CHECK(outcome()->roles.at("pair") == cpu);
    // The monitor lies on the same CPU: only if every owner of that CPU may share with it, a made role may.
    rig.machine.profile.roles["monitor"] = cpu;
    rig.machine.profile.share = {{"app", "load"}, {"load", "monitor"}};
    CHECK_FALSE(outcome().has_value());
    rig.machine.profile.share = {{"app", "load", "monitor"}};
    REQUIRE(outcome().has_value());
    CHECK(outcome()->findings.size() == 1);
    // Nothing outside of what some role has.
    ResolvedRun run = rig.run();
    run.roles["pair"] = "4095";
    run.services.clear();
    run.tools[0].role = "pair";
    CHECK_FALSE(check_run(rig.machine, run).has_value());
}

TEST_CASE("a resolved run that isn't one is refused, and only that") {
    RunRig rig;
    Interrupt none;
    Execution execution(rig.machine, 1, {9, 1, Json{{"perfrig", 1}}}, none, rig.status);
    CHECK(execution.work().state == "refused");
}

TEST_CASE("secrets reach neither events nor artifacts nor reasons") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.secrets = {"hunter2-secret"};
    run.services = {RunRig::service("echo login hunter2-secret; echo ready; exec sleep " + rig.mark)};
    run.services[0].command.environment["PASSWORD"] = "hunter2-secret";
    run.tools = {RunRig::tool("echo hunter2-secret $PASSWORD; echo hunter2-secret >&2; exit 1")};
    CHECK(rig.work(run).state == "failed");
    CHECK(rig.sink.all_text().find("hunter2") == std::string::npos);
    CHECK(rig.sink.all_text().find("[secret]") != std::string::npos);
    for (const auto& artifact : rig.machine.artifacts.list().value())
        CHECK(read_file(artifact.path).value().find("hunter2") == std::string::npos);
}

TEST_CASE("a service that floods its log is drained, and its log says what was dropped") {
    RunRig rig;
    rig.machine.profile.limits.log_bytes = 100'000;
    ResolvedRun run = rig.run();
    run.services = {RunRig::service("echo ready; head -c 400000 /dev/zero | tr '\\0' x; exec sleep " + rig.mark)};
    CHECK(rig.work(run).state == "completed");
    REQUIRE(rig.sink.finding("log_bound"));
    for (const auto& artifact : rig.machine.artifacts.list().value()) CHECK(artifact.size < 101'000);
}

TEST_CASE("a tool that floods a series of its own is read at its pace, and what was left out is told") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.tools = {RunRig::tool("yes 'lat 5' | head -n 200000; sleep 0.3; echo speed: 1")};
    run.tools[0].options["series"] = Json::array({Json{{"name", "lat"}, {"unit", "s"}, {"pattern", "^lat (.+)"}}});
    CHECK(rig.work(run).state == "completed");
    REQUIRE(rig.sink.finding("live_series"));
    const auto left_out = rig.sink.finding("live_series")->evidence.at("left_out").get<int>();
    CHECK(left_out > 100'000);
    CHECK(left_out <= 199'900);
}

TEST_CASE("artifacts beyond the profile's bound are not kept, and the run says so") {
    RunRig rig;
    rig.machine.profile.limits.artifact_bytes = 100;
    ResolvedRun run = rig.run();
    run.services = {RunRig::service("head -c 5000 /dev/zero | tr '\\0' x; echo; echo ready; exec sleep " + rig.mark)};
    CHECK(rig.work(run).state == "completed");
    REQUIRE(rig.sink.finding("artifact_bound"));
    const auto kept = rig.machine.artifacts.list().value();
    REQUIRE(kept.size() == 1); // the tool's output still fits
    CHECK(kept[0].name == "tools/meter.measure.stdout");
}

TEST_CASE("a cancel ends the run within seconds in whatever phase it is, and nothing is left") {
    struct Where {
        const char* state;
        ResolvedRun (*make)(const RunRig&);
    };
    const Where places[] = {
        {"preparing",
         [](const RunRig& rig) {
             ResolvedRun run = rig.run();
             run.build = {{{"/bin/sh", "-c", "exec sleep " + rig.mark}, {}, ""}};
             return run;
         }},
        {"preparing",
         [](const RunRig& rig) {
             ResolvedRun run = rig.run();
             run.services = {RunRig::service("trap '' TERM; while true; do sleep " + rig.mark + "; done")};
             run.services[0].ready.within_ms = 60'000;
             return run;
         }},
        {"warming",
         [](const RunRig& rig) {
             ResolvedRun run = rig.run();
             run.pause_ms = 60'000;
             return run;
         }},
        {"measuring",
         [](const RunRig& rig) {
             ResolvedRun run = rig.run();
             run.tools = {RunRig::tool("exec sleep " + rig.mark)};
             run.measure_ms = 60'000;
             return run;
         }},
    };
    for (const Where& place : places) {
        RunRig rig;
        Interrupt interrupt;
        std::chrono::steady_clock::time_point cancelled_at;
        std::thread canceller([&] {
            for (const Deadline deadline = Deadline::in(Milliseconds(10'000)); !deadline.passed(); ::usleep(2'000)) {
                const auto states = rig.sink.of<protocol::StateChanged>();
                if (!states.empty() && states.back().state == place.state) break;
            }
            ::usleep(100'000); // well into the state
            cancelled_at = std::chrono::steady_clock::now();
            interrupt.set(Interrupt::Kind::cancel, "by a person");
        });
        const RunOutcome outcome = rig.work(place.make(rig), interrupt);
        const auto ended_at = std::chrono::steady_clock::now();
        canceller.join();
        INFO(place.state);
        CHECK(outcome.state == "cancelled");
        CHECK(outcome.reason == "by a person");
        CHECK(ended_at - cancelled_at < std::chrono::seconds(3));
        CHECK(rig.nothing_left());
    }
}

TEST_CASE("a disk that fills up during a run fails it with that reason, and the end is recorded when there is space") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.tools = {RunRig::tool("sleep 20; echo speed: 1")};
    run.measure_ms = 20'000;
    std::thread filler([&] {
        for (const Deadline deadline = Deadline::in(Milliseconds(10'000)); !deadline.passed(); ::usleep(2'000))
            if (rig.sink.states().ends_with("measuring")) break;
        rig.sink.be_full(true);
    });
    Interrupt interrupt;
    Execution execution(rig.machine, 1, {1, 1, to_json(run)}, interrupt, rig.status);
    const RunOutcome outcome = execution.work();
    filler.join();
    CHECK(outcome.state == "failed");
    CHECK(outcome.reason.find("No space left") != std::string::npos);
    std::thread freer([&] {
        ::usleep(200'000);
        rig.sink.be_full(false);
    });
    CHECK(execution.record_end(outcome, Deadline::in(Milliseconds(10'000))));
    freer.join();
    CHECK(rig.sink.states().ends_with("failed"));
    CHECK(rig.nothing_left());
}

TEST_CASE("a readiness command that is asked for long leaves no files open behind each look") {
    RunRig rig;
    ResolvedRun run = rig.run();
    run.services = {RunRig::service("sleep 8; touch up; exec sleep " + rig.mark)};
    run.services[0].ready = {Readiness::Kind::command, "", {"/bin/sh", "-c", "test -e up"}, 20'000};
    const auto open_files = [] { return FileTree().list("/proc/self/fd").value().size(); };
    const std::size_t before = open_files();
    std::atomic<bool> ended = false;
    std::atomic<std::size_t> most = 0;
    std::thread watch([&] {
        for (; !ended; ::usleep(20'000)) most = std::max(most.load(), open_files());
    });
    CHECK(rig.work(run).state == "completed");
    ended = true;
    watch.join();
    CHECK(rig.sink.of<protocol::ProcessStarted>().size() > 10); // so many looks there were
    CHECK(most.load() < before + 40);
}

TEST_CASE("a secret that is also a word of the protocol makes no event unreadable") {
    for (const char* const secret : {"measure", "state", "completed", "tool", "phase_started", "info"}) {
        RunRig rig;
        ResolvedRun run = rig.run();
        run.secrets = {secret};
        run.services[0].command.argv[2] = "echo ready; echo " + std::string(secret) + "; exec sleep " + rig.mark;
        run.measure_ms = 100;
        rig.work(run); // the sink refuses what the controller could not read
        CHECK(rig.sink.states() == "preparing measuring stopping uploading completed");
        CHECK(rig.sink.of<protocol::PhaseStarted>().size() >= 2);
    }
}

TEST_CASE("a process that leaves its grant for a second and comes back voids the run, with both lists named") {
    RunRig rig(false); // a cpuset cgroup would keep it in
    const auto cpus = read_topology(FileTree()).value().online.ids();
    if (cpus.size() < 2) {
        MESSAGE("skipped: this machine has one CPU");
        return;
    }
    const std::string own = std::to_string(cpus[0]), both = own + "," + std::to_string(cpus[1]);
    ResolvedRun run = rig.run();
    run.measure_ms = 1'900;
    run.tools = {RunRig::tool("sleep 0.4; taskset -cp " + both + " $$; sleep 1.2; taskset -cp " + own +
                              " $$; sleep 0.2; echo speed: 1")};
    CHECK(rig.work(run).reason == "");
    const auto* finding = rig.sink.finding("placement");
    REQUIRE(finding);
    CHECK(finding->severity == "void");
    CHECK(finding->subject == "meter");
    CHECK(finding->message.find("granted CPUs " + own + " and ran outside them") != std::string::npos);
    CHECK(finding->evidence.at("observed_cpus").get<std::string>() == CpuList({cpus[0], cpus[1]}).text());
    CHECK(finding->evidence.at("readings").get<int>() >= 4);
    CHECK(finding->evidence.at("readings_outside").get<int>() < finding->evidence.at("readings").get<int>());
}
