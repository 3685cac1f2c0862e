// A run through helper and guardian: what is true of its processes, and that nothing of it is left.
#include "tests/unit/agent/helper/support.hpp"

using namespace perfrig;
using namespace perfrig::test;

TEST_CASE("a process of a run is pinned from its first instruction and lies in its cgroups") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    const CpuList last{*std::prev(own_cpus().end())};
    auto o = order({"cat", "/proc/self/status", "/proc/self/cgroup"}, "web-1");
    o.cpus = last;
    const Outcome outcome = outcome_of(*guard, o);
    CHECK(outcome.exited.status.good());
    CHECK(outcome.out.find("Cpus_allowed_list:\t" + last.text() + "\n") != std::string::npos);
    const auto facts = bench.client->facts(soon());
    REQUIRE(facts);
    CHECK(outcome.spawned.cpuset == facts->cpuset);
    if (facts->cpuset == "none") {
        MESSAGE("no cpuset here (" << facts->why << "); skipped");
        CHECK_FALSE(outcome.spawned.cpuset_why.empty());
        return;
    }
    CHECK(outcome.out.find("/run-1-1/web-1\n") != std::string::npos);
    REQUIRE_FALSE(outcome.spawned.cgroups.empty());
    const auto cpus = FileTree().read_line(outcome.spawned.cgroups.back() + "/cpuset.cpus");
    REQUIRE(cpus);
    CHECK(*cpus == last.text());
}

TEST_CASE("a process runs as the workload's user, in the run's directory, with exactly its environment") {
    Bench bench;
    auto guard = bench.client->begin_run({2, 3}, soon());
    REQUIRE(guard);
    CHECK(guard->directory() == bench.config.work_base + "/run-2-3");
    CHECK(outcome_of(*guard, order({"pwd"})).out == guard->directory() + "\n");
    auto o = order({"/usr/bin/env"});
    o.environment = {{"B", "2"}, {"A", "x y=z"}};
    o.environment.emplace_back("PERFRIG_RUN", "another's"); // is not to be had by asking
    CHECK(outcome_of(*guard, o).out == "B=2\nA=x y=z\nPERFRIG_RUN=" + guard->directory() + "\n");
    const auto nobody = find_user(FileTree(), "nobody");
    REQUIRE(nobody);
    const auto uid = is_root() ? nobody->uid : ::geteuid();
    CHECK(outcome_of(*guard, order({"id", "-u"})).out == std::to_string(uid) + "\n");
    CHECK(outcome_of(*guard, order({"sh", "-c", "echo hi > mine && cat mine"})).out == "hi\n");
    CHECK(outcome_of(*guard, order({"sh", "-c", "ulimit -c"})).out == "0\n");
}

TEST_CASE("no process of a run can gain privileges") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    CHECK(outcome_of(*guard, order({"grep", "NoNewPrivs", "/proc/self/status"})).out == "NoNewPrivs:\t1\n");
}

TEST_CASE(
    "a run has no more processes than it may, it is told what holds it to that, and how often it was refused one") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        Bench bench(use_cgroups);
        auto guard = bench.client->begin_run({1, 1}, soon(), 40);
        REQUIRE(guard);
        auto other = bench.client->begin_run({2, 1}, soon());
        REQUIRE(other);
        const std::string mark = new_mark();
        const auto forks = order({"bash", "-c", "for i in {1..60}; do sleep " + mark + " & done 2>/dev/null; wait"});
        const auto spawned = guard->spawn(forks, soon());
        REQUIRE(spawned);
        CHECK(spawned->most_processes == 40);
        if (!use_cgroups) CHECK(spawned->processes_by == "rlimit");
        CHECK(eventually([&] { return marked(mark).size() >= 20 || spawned->processes_by == "rlimit"; }));
        for (int look = 0; look < 20; ++look) {
            CHECK(marked(mark).size() <= 40);
            ::usleep(10'000);
        }
        if (spawned->processes_by == "cgroup") { // counts the run alone: another is not disturbed
            CHECK(outcome_of(*other, order({"sh", "-c", "/bin/echo forks"})).out == "forks\n");
            const auto ended = guard->end(soon());
            REQUIRE(ended);
            CHECK(ended->refused_processes > 0);
        }
        CHECK(outcome_of(*other, order({"true"})).spawned.processes_by == "none");
    }
}

TEST_CASE("the end of a process is told with its status, times and memory") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    const Outcome outcome =
        outcome_of(*guard, order({"sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 3"}, "busy"));
    CHECK(outcome.exited.name == "busy");
    CHECK(outcome.exited.status == ExitStatus{3, 0});
    CHECK(outcome.exited.user_seconds > 0.01);
    CHECK(outcome.exited.system_seconds >= 0);
    CHECK(outcome.exited.max_rss_bytes > 100'000);
    CHECK(outcome.exited.end_ns > outcome.spawned.start_ns);
}

TEST_CASE("a process reads what comes through the descriptor that it was given") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    REQUIRE(::write(to.get(), "words", 5) == 5);
    to.reset();
    auto o = order({"cat"});
    o.stdin_fd = from.get();
    CHECK(outcome_of(*guard, o).out == "words");
    CHECK(outcome_of(*guard, order({"cat"})).out.empty());
}

TEST_CASE("what can't be started is refused with its reason, and the run goes on") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    auto refused = guard->spawn(order({"no-such-tool"}), soon());
    REQUIRE(!refused);
    CHECK(refused.error().kind == ErrorKind::not_found);
    CHECK(refused.error().text().starts_with("can't start no-such-tool: not found in PATH (/usr/bin:/bin)"));
    auto o = order({"true"});
    o.cpus = CpuList{4000};
    refused = guard->spawn(o, soon());
    REQUIRE(!refused);
    CHECK(refused.error().kind == ErrorKind::bad_input);
    CHECK(refused.error().why.find("4000") != std::string::npos);
    o = order({"true", "caf\xe9"});
    refused = guard->spawn(o, soon());
    REQUIRE(!refused);
    CHECK(refused.error().kind == ErrorKind::bad_input);
    o = order({"true", std::string(200'000, 'x')});
    CHECK(!guard->spawn(o, soon()));
    CHECK(outcome_of(*guard, order({"echo", "still here"})).out == "still here\n");
}

TEST_CASE("speculation control does what a trial said it would") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    for (const auto kind : {SpeculationKind::indirect_branch, SpeculationKind::store_bypass}) {
        auto o = order({"cat", "/proc/self/status"});
        (kind == SpeculationKind::indirect_branch ? o.speculation.indirect_branch : o.speculation.store_bypass) =
            SpeculationWish::force_disable;
        const auto trial = probe_speculation(kind, SpeculationWish::force_disable);
        REQUIRE(trial);
        if (trial->granted()) {
            const auto lines = parse_speculation_lines(outcome_of(*guard, o).out);
            const auto& line = kind == SpeculationKind::indirect_branch ? lines.indirect_branch : lines.store_bypass;
            REQUIRE(line);
            CHECK(line->find("force") != std::string::npos);
        } else {
            const auto refused = guard->spawn(o, soon());
            REQUIRE(!refused);
            CHECK(refused.error().kind == ErrorKind::forbidden);
            CHECK(refused.error().why == trial->words);
        }
    }
}

TEST_CASE("signals reach the process group of a process of the run, and no other process") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    const std::string mark = new_mark();
    const auto spawned = guard->spawn(order({"sh", "-c", "sleep " + mark + " & wait"}), soon());
    REQUIRE(spawned);
    CHECK(eventually([&] { return marked(mark).size() == 2; }));
    for (const pid_t other : {pid_t{1}, ::getpid(), bench.client->helper_pid()}) {
        const auto refused = guard->signal(other, SIGKILL, soon());
        REQUIRE(!refused);
        CHECK((refused.error().kind == ErrorKind::not_found || refused.error().kind == ErrorKind::bad_input));
    }
    CHECK(!guard->signal(spawned->pid, SIGSEGV, soon())); // not one of those that are sent
    CHECK(guard->signal(spawned->pid, SIGTERM, soon()));
    const auto exited = guard->next_event(soon());
    REQUIRE(exited);
    CHECK(exited->status == ExitStatus{0, SIGTERM});
    CHECK(none_left(mark));
    CHECK(guard->signal(spawned->pid, SIGTERM, soon()).error().kind == ErrorKind::not_found);
}

TEST_CASE("daemons in sessions of their own die when their run ends, and its cgroup goes") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        Bench bench(use_cgroups);
        auto guard = bench.client->begin_run({7, 1}, soon());
        REQUIRE(guard);
        const std::string mark = new_mark();
        const Outcome outcome = outcome_of(*guard, [&] {
            auto o = daemon_order(mark);
            o.argv[2] = "exec >/dev/null 2>&1; " + o.argv[2]; // a daemon that lets go of the output
            return o;
        }());
        CHECK(outcome.exited.status.good());
        REQUIRE(daemon_runs(mark));
        const auto ended = guard->end(soon());
        REQUIRE(ended);
        CHECK(ended->clean);
        CHECK(ended->why == "");
        CHECK(ended->killed >= 3);
        CHECK(marked(mark).empty());
        for (const auto& folder : outcome.spawned.cgroups) CHECK(::access(folder.c_str(), F_OK) != 0);
        CHECK(guard->end(soon())); // a second time does nothing
        CHECK(bench.client->take_lost().empty());
    }
}

TEST_CASE("a process that is still running at the end of its run reports its end") {
    Bench bench;
    auto guard = bench.client->begin_run({7, 1}, soon());
    REQUIRE(guard);
    const auto spawned = guard->spawn(order({"sleep", "1000"}), soon());
    REQUIRE(spawned);
    const auto none = guard->next_event(Deadline::in(Milliseconds(10)));
    REQUIRE(!none);
    CHECK(none.error().kind == ErrorKind::timed_out);
    REQUIRE(guard->end(soon()));
    const auto exited = guard->next_event(soon());
    REQUIRE(exited);
    CHECK(exited->pid == spawned->pid);
    CHECK(exited->status == ExitStatus{0, SIGKILL});
}

TEST_CASE("a bomb of forking shells is ended while it grows") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        Bench bench(use_cgroups);
        auto guard = bench.client->begin_run({8, 1}, soon());
        REQUIRE(guard);
        const std::string mark = new_mark();
        // Doubles seven times: at most 255 shells.
        const std::string bomb =
            "f() { [ $1 -gt 0 ] || exec sleep " + mark + "; f $(($1-1)) & f $(($1-1)) & wait; }; f 7";
        REQUIRE(guard->spawn(order({"sh", "-c", bomb}), soon()));
        REQUIRE(eventually([&] { return marked(mark).size() > 20; }));
        const auto ended = guard->end(soon());
        REQUIRE(ended);
        CHECK(ended->why == "");
        CHECK(ended->clean);
        CHECK(marked(mark).empty());
    }
}

TEST_CASE("a run is begun once, and ending it by number is idempotent and may remove its directory") {
    Bench bench;
    auto guard = bench.client->begin_run({5, 1}, soon());
    REQUIRE(guard);
    const std::string directory = guard->directory();
    const auto again = bench.client->begin_run({5, 1}, soon());
    REQUIRE(!again);
    CHECK(again.error().kind == ErrorKind::conflict);
    const std::string mark = new_mark();
    REQUIRE(guard->spawn(daemon_order(mark), soon()));
    REQUIRE(daemon_runs(mark));
    CHECK(outcome_of(*guard,
                     order({"sh", "-c", "mkdir -p a/b && echo x > a/b/c && ln -s /etc d && chmod 0 a/b && chmod 0 ."}))
              .out == "");
    for (const bool remove : {false, true, true}) {
        const auto ended = bench.client->end_run(5, remove, soon());
        REQUIRE(ended);
        CHECK(ended->clean);
        CHECK(marked(mark).empty());
        CHECK((::access(directory.c_str(), F_OK) == 0) == !remove);
    }
    CHECK(::access("/etc/passwd", F_OK) == 0);
    CHECK(guard->next_event(soon()).error().kind == ErrorKind::unavailable); // its guardian is gone with it
    CHECK(bench.client->end_run(99, true, soon()));                          // never begun
    CHECK(bench.client->begin_run({5, 2}, soon()));
}

TEST_CASE("runs beside each other are ended each for itself") {
    Bench bench;
    auto one = bench.client->begin_run({1, 1}, soon());
    auto two = bench.client->begin_run({2, 1}, soon());
    REQUIRE(one);
    REQUIRE(two);
    const std::string mark_one = new_mark(), mark_two = new_mark();
    REQUIRE(one->spawn(daemon_order(mark_one), soon()));
    REQUIRE(two->spawn(daemon_order(mark_two), soon()));
    REQUIRE(daemon_runs(mark_one));
    REQUIRE(daemon_runs(mark_two));
    REQUIRE(bench.client->end_run(1, false, soon()));
    CHECK(marked(mark_one).empty());
    CHECK(marked(mark_two).size() == 3);
    { const RunGuard dropped = *std::move(two); } // without end(): the guardian ends it
    CHECK(none_left(mark_two));
}

TEST_CASE("whether the helper lives is answered at once, even while it is busy with a request") {
    Bench bench;
    ::kill(bench.client->helper_pid(), SIGSTOP); // a long request, seen from outside
    std::thread asking([&] { CHECK(!bench.client->facts(Deadline::in(Milliseconds(3'000)))); });
    Milliseconds longest{0};
    for (const auto until = Deadline::in(Milliseconds(1'000)); !until.passed();) {
        const auto before = std::chrono::steady_clock::now();
        CHECK(bench.client->check_alive());
        CHECK(bench.client->take_lost().empty());
        longest =
            std::max(longest, std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - before));
        std::this_thread::sleep_for(Milliseconds(5));
    }
    asking.join();
    ::kill(bench.client->helper_pid(), SIGCONT);
    CHECK(longest.count() < 1'000);
    CHECK(bench.client->facts(soon())); // late answers are passed over
}
