// The thread collector against the real kernel and a child process whose CPU use is known.
// PERFRIG_COLLECT_SECONDS lengthens the comparison with independent readers (the nightly takes 20).
#include "agent/collectors/threads.hpp"
#include "common/metrics/coverage.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/thread_farm.hpp"
#include "tests/support/ticks.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sched.h>

using namespace perfrig;
using perfrig::test::ThreadFarm;
using perfrig::test::TickReader;

namespace {

double seconds_to_compare() {
    const char* text = std::getenv("PERFRIG_COLLECT_SECONDS");
    return text != nullptr ? std::atof(text) : 2.0;
}

struct Live {
    SampleSink sink;
    TickReader seen;
    ThreadCollector collector{FileTree("/")};

    const Tick& tick() {
        collector.tick(0, sink);
        seen.add(sink.take(0));
        return seen.last();
    }
};

// The output of a command and its status; the command ends by itself.
std::pair<std::string, int> run(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    std::array<char, 4096> chunk{};
    while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe)) out.append(chunk.data(), n);
    return {out, ::pclose(pipe)};
}

// The sum over threads of pidstat's average %CPU, as CPU seconds per second. Lines: "Average: UID TGID TID %usr ...".
double pidstat_cpus(const std::string& output, std::size_t& threads) {
    double percent = 0;
    threads = 0;
    for (std::size_t at = 0; at < output.size();) {
        const std::size_t end = std::min(output.find('\n', at), output.size());
        char tgid[32], tid[32];
        double usr = 0, system = 0, guest = 0, wait = 0, cpu = 0;
        const std::string line = output.substr(at, end - at);
        if (std::sscanf(line.c_str(), "Average: %*s %31s %31s %lf %lf %lf %lf %lf", tgid, tid, &usr, &system, &guest,
                        &wait, &cpu) == 7 &&
            std::string_view(tgid) == "-") {
            percent += cpu;
            ++threads;
        }
        at = end + 1;
    }
    return percent / 100;
}

} // namespace

TEST_CASE("the sum over 8 busy threads is what the process says that it used, within 5 percent") {
    ThreadFarm farm(8);
    Live live;
    live.collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    CHECK(live.collector.threads() == 9);
    const double sched_before = live.seen.sum("thread_cpu_seconds"),
                 process_before = live.seen.sum("process_cpu_seconds");
    const double ticks_before = live.seen.sum("thread_cpu_user_seconds") + live.seen.sum("thread_cpu_system_seconds");
    const double used = farm.burst(seconds_to_compare());
    CHECK(live.tick().collector_errors.empty());
    CHECK(used > 0.5);
    CHECK(live.seen.sum("thread_cpu_user_seconds") + live.seen.sum("thread_cpu_system_seconds") - ticks_before ==
          doctest::Approx(used).epsilon(0.05));
    if (live.seen.count("thread_cpu_seconds") > 0) {
        CHECK(live.seen.sum("thread_cpu_seconds") - sched_before == doctest::Approx(used).epsilon(0.05));
        CHECK(live.seen.sum("thread_run_queue_wait_seconds") > 0); // 8 threads on fewer CPUs, or a start on a busy one
    }
    const CounterSpan threads[] = {{sched_before, live.seen.sum("thread_cpu_seconds")}};
    const CounterSpan process[] = {{process_before, live.seen.sum("process_cpu_seconds")}};
    const Coverage coverage = cpu_coverage(threads, process);
    REQUIRE(coverage.ratio);
    CHECK(*coverage.ratio == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("pidstat sees the same CPU use of 8 busy threads over the same window, within 5 percent") {
    if (std::system("command -v pidstat >/dev/null 2>&1") != 0) {
        MESSAGE("skipped: pidstat is not installed");
        return;
    }
    const int seconds = std::max(2, static_cast<int>(seconds_to_compare()));
    ThreadFarm farm(8);
    Live live;
    live.collector.watch({"farm", "app", farm.pid(), ""});
    farm.start_burst(seconds + 1.0);
    live.tick();
    const double before = live.seen.sum("thread_cpu_user_seconds") + live.seen.sum("thread_cpu_system_seconds");
    const auto start = std::chrono::steady_clock::now();
    const auto [output, status] = run("LC_ALL=C S_TIME_FORMAT=ISO pidstat -u -t -p " + std::to_string(farm.pid()) +
                                      " " + std::to_string(seconds) + " 1");
    live.tick();
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double ours = live.seen.sum("thread_cpu_user_seconds") + live.seen.sum("thread_cpu_system_seconds") - before;
    farm.finish_burst();
    REQUIRE(status == 0);
    std::size_t threads = 0;
    const double theirs = pidstat_cpus(output, threads);
    INFO(output);
    CHECK(threads >= 8);
    CHECK(ours / wall == doctest::Approx(theirs).epsilon(0.05));
}

TEST_CASE("threads that start and end between ticks come and go without an error") {
    ThreadFarm farm(3);
    Live live;
    live.collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    CHECK(live.seen.count("thread_cpu_user_seconds") == 4);
    farm.add_thread();
    live.tick();
    CHECK(live.seen.count("thread_cpu_user_seconds", {{"comm", "farm-3"}}) == 1);
    farm.end_thread();
    farm.add_thread(); // as many as before, but another
    const Tick& tick = live.tick();
    CHECK(tick.collector_errors.empty());
    CHECK(live.seen.count("thread_cpu_user_seconds", {{"comm", "farm-3"}}) == 0);
    CHECK(live.seen.count("thread_cpu_user_seconds", {{"comm", "farm-4"}}) == 1);
    CHECK(live.seen.count("thread_cpu_user_seconds") == 5);
}

TEST_CASE("a process that the root forks later is followed, and its end is no error") {
    ThreadFarm farm(1);
    Live live;
    live.collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    CHECK(live.seen.count("process_cpu_seconds") == 1);
    const pid_t child = farm.fork_child();
    live.tick();
    CHECK(live.seen.count("process_cpu_seconds", {{"pid", std::to_string(child)}, {"process", "farm"}}) == 1);
    CHECK(live.seen.value("process_rss_bytes", {{"pid", std::to_string(child)}}).value_or(0) > 0);
    ::kill(child, SIGKILL);
}

TEST_CASE("a process that is killed ends its series without an error") {
    Live live;
    {
        ThreadFarm farm(4);
        live.collector.watch({"farm", "app", farm.pid(), ""});
        live.tick();
    } // killed and reaped
    const Tick& tick = live.tick();
    CHECK(tick.collector_errors.empty());
    CHECK(tick.values.empty());
    CHECK(tick.ended_series.size() >= 5 * 4 + 3);
}

TEST_CASE("a thread's new name is seen once it has run, its new affinity at once") {
    ThreadFarm farm(2);
    Live live;
    live.collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    const auto cpu = live.collector.take_affinity_news().changes.at(0).cpus.ids().front();
    farm.rename_first();
    farm.pin_first(cpu);
    farm.burst(0.01);
    live.tick();
    std::size_t renamed = 0;
    for (const ThreadAffinity& a : live.collector.take_affinity_news().changes)
        if (a.comm == "renamed) (x") {
            ++renamed;
            CHECK(a.cpus == CpuList{cpu});
        }
    CHECK(renamed == 1);
    const auto now = read_affinities(FileTree("/"), {farm.pid(), 1 << 30});
    REQUIRE(now);
    REQUIRE(now->size() == 3);
    CHECK(now->at(1).comm == "renamed) (x");
    CHECK(now->at(1).cpus == CpuList{cpu});
}

TEST_CASE("the affinity of a thread that sleeps is asked for at every tick, and told once for each change") {
    ThreadFarm farm(2);
    Live live;
    live.collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    const auto before = live.collector.take_affinity_news();
    REQUIRE(before.changes.size() == 3);
    CHECK(before.looks.at("farm") == 3);
    if (before.changes[0].cpus.size() < 2) {
        MESSAGE("skipped: one CPU");
        return;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(before.changes[0].cpus.ids().back()), &one);
    const pid_t tid = before.changes[2].tid;
    REQUIRE(::sched_setaffinity(tid, sizeof one, &one) == 0); // from outside: it doesn't run
    live.tick();
    live.tick();
    const auto after = live.collector.take_affinity_news();
    REQUIRE(after.changes.size() == 1);
    CHECK(after.changes[0].tid == tid);
    CHECK(after.changes[0].process == "farm");
    CHECK(after.changes[0].cpus == CpuList{before.changes[0].cpus.ids().back()});
    CHECK(after.looks.at("farm") == 6);
}
