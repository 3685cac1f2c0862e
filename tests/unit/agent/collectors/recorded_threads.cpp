// The thread collector against small recorded trees: what it makes of content that a live kernel gives only rarely.
#include "agent/collectors/threads.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/temp_tree.hpp"
#include "tests/support/ticks.hpp"

#include <unistd.h>

using namespace perfrig;
using perfrig::test::TempTree;
using perfrig::test::TickReader;

namespace {

std::string stat_text(int id, const std::string& comm, int user, int system, int parent = 1, int group = 1) {
    return std::to_string(id) + " (" + comm + ") S " + std::to_string(parent) + " " + std::to_string(group) +
           " 42 0 -1 4194560 100 200 0 0 " + std::to_string(user) + " " + std::to_string(system) +
           " 6 7 20 0 3 0 9876 1000 10\n";
}
std::string status_text(int voluntary, int involuntary, const std::string& cpus = "0-1",
                        const std::string& comm = "io) (1") {
    return "Name:\t" + comm + "\nCpus_allowed_list:\t" + cpus + "\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t" +
           std::to_string(voluntary) + "\nnonvoluntary_ctxt_switches:\t" + std::to_string(involuntary) + "\n";
}

struct Recorded {
    TempTree files;
    SampleSink sink;
    TickReader seen;
    ThreadCollector collector{files.tree()};

    Recorded() {
        files.write("/proc/loadavg", "0 0 0 1/2 77\n");
        process(70, 1, 1);
        thread(70, 70, "web server", 100, 50);
        thread(70, 71, "io) (1", 10, 5);
        collector.watch({"web", "app", 70, ""});
    }
    void process(int pid, int parent, int group) {
        files.write("/proc/" + std::to_string(pid) + "/stat", stat_text(pid, "web server", 120, 60, parent, group));
        files.write("/proc/" + std::to_string(pid) + "/statm", "100 25 1 1 0 1 0\n");
    }
    std::string folder(int pid, int tid) { return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid); }
    void thread(int pid, int tid, const std::string& comm, int user, int system) {
        files.write(folder(pid, tid) + "/stat", stat_text(tid, comm, user, system));
        files.write(folder(pid, tid) + "/status", status_text(user, system, "0-1", comm));
        files.write(folder(pid, tid) + "/schedstat",
                    std::to_string((user + system) * 10'000'000LL) + " 2000000000 9\n");
    }
    const Tick& tick() {
        collector.tick(0, sink);
        seen.add(sink.take(0));
        return seen.last();
    }
};

} // namespace

TEST_CASE("every thread gives its six series with process, role, pid, tid and name") {
    Recorded r;
    const Tick& tick = r.tick();
    CHECK(tick.collector_errors.empty());
    CHECK(tick.new_series.size() == 2 * 6 + 3);
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "70"}, {"comm", "web server"}, {"role", "app"}}) == 1.0);
    CHECK(r.seen.value("thread_cpu_system_seconds", {{"tid", "70"}}) == 0.5);
    CHECK(r.seen.value("thread_cpu_seconds", {{"tid", "71"}, {"comm", "io) (1"}, {"pid", "70"}, {"process", "web"}}) ==
          0.15);
    CHECK(r.seen.value("thread_run_queue_wait_seconds", {{"tid", "71"}}) == 2.0);
    CHECK(r.seen.value("thread_voluntary_switches", {{"tid", "71"}}) == 10);
    CHECK(r.seen.value("thread_involuntary_switches", {{"tid", "71"}}) == 5);
    CHECK(r.seen.value("process_cpu_seconds") == 1.8);
    CHECK(r.seen.value("process_waited_children_cpu_seconds") == 0.13);
    CHECK(r.seen.value("process_rss_bytes") == 25.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    CHECK(r.tick().new_series.empty());
    CHECK(r.seen.last().values.size() == 15);
    CHECK(r.collector.threads() == 2);
}

TEST_CASE("stat and status are read again only where schedstat has changed") {
    Recorded r;
    r.tick();
    r.files.write(r.folder(70, 71) + "/stat", stat_text(71, "io) (1", 999, 5));
    r.tick();
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}) == 0.1);
    r.thread(70, 71, "io) (1", 999, 5);
    r.tick();
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}) == 9.99);
}

TEST_CASE("user and system time wait for a clock tick of CPU or ten readings; switches never wait") {
    Recorded r;
    r.tick();
    const auto run_a_millisecond = [&](int n) { // 150 ms so far
        r.files.write(r.folder(70, 71) + "/schedstat", std::to_string(150'000'000 + n * 500'000) + " 2000000000 9\n");
        r.files.write(r.folder(70, 71) + "/status", status_text(10 + n, 5));
        r.files.write(r.folder(70, 71) + "/stat", stat_text(71, "io) (1", 11, 5));
    };
    for (int n = 1; n <= 10; ++n) {
        run_a_millisecond(n);
        r.tick();
        CHECK(r.seen.value("thread_voluntary_switches", {{"tid", "71"}}) == 10 + n);
        CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}) == 0.1);
    }
    run_a_millisecond(11);
    r.tick();
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}) == 0.11);
}

TEST_CASE("threads that come are read in the same tick, threads that go end their series") {
    Recorded r;
    r.tick();
    r.thread(70, 72, "late", 1, 1);
    CHECK(r.tick().new_series.size() == 6);
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"comm", "late"}}) == 0.01);
    r.files.remove(r.folder(70, 71));
    CHECK(r.tick().ended_series.size() == 6);
    CHECK_FALSE(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}));
    CHECK(r.seen.count("thread_cpu_user_seconds") == 2);
    CHECK(r.seen.last().collector_errors.empty());
}

TEST_CASE("a thread that renames itself carries its value under both names in the tick of the change") {
    Recorded r;
    r.tick();
    r.thread(70, 71, "worker-1", 20, 5);
    const Tick& tick = r.tick();
    CHECK(tick.new_series.size() == 6);
    CHECK(tick.ended_series.size() == 6);
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"comm", "io) (1"}}) == 0.2);
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"comm", "worker-1"}}) == 0.2);
    r.tick();
    CHECK(r.seen.count("thread_cpu_user_seconds", {{"tid", "71"}}) == 1);
}

TEST_CASE("a kernel without schedstat gives the other series and says what is absent, once") {
    Recorded r;
    for (int tid : {70, 71}) r.files.remove(r.folder(70, tid) + "/schedstat");
    const Tick& tick = r.tick();
    CHECK(tick.collector_errors.empty());
    REQUIRE(tick.findings.size() == 1);
    CHECK(tick.findings[0].find("schedstat") != std::string::npos);
    CHECK(r.seen.count("thread_cpu_seconds") == 0);
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "70"}}) == 1.0);
    r.files.write(r.folder(70, 70) + "/stat", stat_text(70, "web server", 200, 50));
    CHECK(r.tick().findings.empty());
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "70"}}) == 2.0);
}

TEST_CASE("a schedstat that is switched off (all zero) counts as absent") {
    Recorded r;
    for (int tid : {70, 71}) r.files.write(r.folder(70, tid) + "/schedstat", "0 0 0\n");
    CHECK(r.tick().findings.size() == 1);
    CHECK(r.seen.count("thread_cpu_seconds") == 0);
    CHECK(r.seen.count("thread_cpu_user_seconds") == 2);
}

TEST_CASE("content that isn't understood is an error of the tick and no value; the other threads go on") {
    Recorded r;
    r.files.write(r.folder(70, 71) + "/stat", "71 (io) S 1\n");
    const Tick& tick = r.tick();
    REQUIRE(tick.collector_errors.size() == 1);
    CHECK(tick.collector_errors[0].find("thread 71, stat") == 0);
    CHECK_FALSE(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}));
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "70"}}) == 1.0);
    CHECK(r.tick().collector_errors.size() == 1); // still: it is not taken for read
    r.thread(70, 71, "io", 10, 5);
    CHECK(r.tick().collector_errors.empty());
    CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}) == 0.1);
}

TEST_CASE("children and members of the root's process group are followed, others aren't") {
    Recorded r;
    r.tick();
    r.process(80, 70, 1);
    r.thread(80, 80, "child", 1, 1);
    r.process(60, 80, 1); // a grandchild with a lower number
    r.thread(60, 60, "grandchild", 1, 1);
    r.process(81, 1, 70);
    r.thread(81, 81, "in the group", 1, 1);
    r.process(82, 1, 1);
    r.thread(82, 82, "stranger", 1, 1);
    r.tick();
    CHECK(r.seen.count("process_cpu_seconds") == 1); // nothing was born, says loadavg
    r.files.write("/proc/loadavg", "0 0 0 1/2 82\n");
    r.tick();
    CHECK(r.seen.count("process_cpu_seconds") == 4);
    CHECK(r.seen.count("thread_cpu_seconds", {{"comm", "stranger"}}) == 0);
    CHECK(r.seen.count("thread_cpu_seconds", {{"process", "web"}}) == 5);
}

TEST_CASE("a cgroup's processes are followed, those of the groups below it too") {
    Recorded r;
    r.process(80, 1, 1);
    r.thread(80, 80, "elsewhere", 1, 1);
    r.files.write("/sys/fs/cgroup/run/cgroup.procs", "70\n").write("/sys/fs/cgroup/run/sub/cgroup.procs", "80\n");
    r.collector.watch({"web", "app", 0, "/sys/fs/cgroup/run"});
    r.tick();
    CHECK(r.seen.count("process_cpu_seconds") == 2);
}

TEST_CASE("what is unwatched ends all its series, and the same name again begins anew") {
    Recorded r;
    r.tick();
    r.collector.unwatch("web");
    CHECK(r.tick().ended_series.size() == 15);
    CHECK(r.seen.last().values.empty());
    r.collector.watch({"web", "app", 70, ""});
    CHECK(r.tick().new_series.size() == 15);
}

TEST_CASE("a process that was gone before its first reading is a finding, not an error") {
    Recorded r;
    r.collector.watch({"tool", "load", 4242, ""});
    const Tick& tick = r.tick();
    CHECK(tick.collector_errors.empty());
    REQUIRE(tick.findings.size() == 1);
    CHECK(tick.findings[0].find("'tool'") != std::string::npos);
}

TEST_CASE("the affinities that status says are kept, and a list that isn't one is an error") {
    Recorded r;
    r.files.write(r.folder(70, 71) + "/status", status_text(1, 1, "1-0"));
    CHECK(r.tick().collector_errors.size() == 1);
    const auto affinities = r.collector.take_affinity_news().changes;
    REQUIRE(affinities.size() == 2);
    CHECK(affinities[0].tid == 70);
    CHECK(affinities[0].cpus.text() == "0-1");
    CHECK(affinities[0].nodes.text() == "0");
    CHECK(affinities[0].role == "app");
}

TEST_CASE("without files to keep open the values are the same") {
    Recorded r;
    ThreadCollector poor(r.files.tree(), 1);
    poor.watch({"web", "app", 70, ""});
    for (int i = 0; i < 2; ++i) {
        poor.tick(0, r.sink);
        r.seen.add(r.sink.take(0));
        CHECK(r.seen.value("thread_cpu_user_seconds", {{"tid", "71"}}) == 0.1);
        CHECK(r.seen.last().collector_errors.empty());
    }
}
