// The thread collector with switches from taskstats, beside one that reads files alone: the same values.
#include "agent/collectors/thread_files.hpp"
#include "agent/collectors/threads.hpp"
#include "common/base/clock.hpp"
#include "common/process/thread_counts_channel.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/thread_farm.hpp"
#include "tests/support/ticks.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <sys/socket.h>
#include <thread>

using namespace perfrig;
using perfrig::test::ThreadFarm;
using perfrig::test::TickReader;

namespace {

// A reader as the helper has one, in a thread.
struct Reader {
    Result<TaskStats> stats = TaskStats::open();
    std::optional<ThreadCountsClient> client;
    UniqueFd theirs;
    std::thread thread;

    Reader() {
        if (!stats) return;
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        client.emplace(UniqueFd(ends[0]));
        theirs.reset(ends[1]);
        thread = std::thread([this] { serve_thread_counts(*stats, theirs.get()); });
    }
    void end() {
        if (!thread.joinable()) return;
        ::shutdown(theirs.get(), SHUT_RDWR);
        thread.join();
    }
    ~Reader() { end(); }
    bool skip() const {
        if (stats) return false;
        MESSAGE("skipped: " << stats.error().text());
        return true;
    }
};

struct Live {
    SampleSink sink;
    TickReader seen;
    ThreadCollector collector;
    explicit Live(ThreadCountsClient* counts) : collector(FileTree("/"), 0, counts) {}
    const Tick& tick() {
        collector.tick(0, sink);
        seen.add(sink.take(0));
        return seen.last();
    }
};

constexpr std::array exact = {"thread_voluntary_switches", "thread_involuntary_switches", "thread_cpu_seconds",
                              "thread_run_queue_wait_seconds"};

std::vector<double> sums(const TickReader& seen) {
    std::vector<double> all;
    for (const char* name : exact) all.push_back(seen.sum(name));
    return all;
}

// Both see the same moment: the farm's threads have said that they are done a little before they wait.
void tick_both(Live& counted, Live& files) {
    const auto deadline = Deadline::in(Milliseconds(30'000));
    std::vector<double> before;
    do {
        REQUIRE_FALSE(deadline.passed());
        CHECK(files.tick().collector_errors.empty());
        before = sums(files.seen);
        CHECK(counted.tick().collector_errors.empty());
        files.tick();
    } while (sums(files.seen) != before);
}

} // namespace

TEST_CASE("switches by taskstats are those of status, and all other values too, thread by thread, over bursts") {
    Reader reader;
    if (reader.skip()) return;
    ThreadFarm farm(6);
    Live counted(&*reader.client), files(nullptr);
    for (Live* one : {&counted, &files}) one->collector.watch({"farm", "app", farm.pid(), ""});
    double before = 0;
    for (int i = 0; i < 4; ++i) {
        farm.burst(0.25); // 6 threads on fewer CPUs: both kinds of switches; between bursts all of them wait
        tick_both(counted, files);
        for (const auto& comm : {"farm-0", "farm-1", "farm-2", "farm-3", "farm-4", "farm-5"}) {
            CAPTURE(comm);
            for (const char* name : exact) {
                CAPTURE(name);
                REQUIRE(counted.seen.value(name, {{"comm", comm}}));
                CHECK(counted.seen.value(name, {{"comm", comm}}) == files.seen.value(name, {{"comm", comm}}));
            }
            for (const char* name : {"thread_cpu_user_seconds", "thread_cpu_system_seconds"})
                CHECK(std::abs(counted.seen.value(name, {{"comm", comm}}).value() -
                               files.seen.value(name, {{"comm", comm}}).value()) < 0.011); // a clock tick
        }
        const double now = counted.seen.sum("thread_voluntary_switches");
        CHECK(now >= before + 6); // each burst waits at its end
        before = now;
    }
    CHECK(counted.seen.sum("thread_involuntary_switches") > 0);
    CHECK(reader.client->cpu_seconds() > 0);
}

TEST_CASE("a thread that renames itself, ends or is replaced is followed by taskstats as by files") {
    Reader reader;
    if (reader.skip()) return;
    ThreadFarm farm(3);
    Live live(&*reader.client);
    live.collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    farm.rename_first();
    live.tick();
    CHECK(live.seen.count("thread_voluntary_switches", {{"comm", "renamed) (x"}}) == 1);
    farm.end_thread();
    farm.add_thread();
    farm.burst(0.01);
    CHECK(live.tick().collector_errors.empty());
    CHECK(live.seen.count("thread_voluntary_switches", {{"comm", "farm-2"}}) == 0);
    CHECK(live.seen.count("thread_voluntary_switches", {{"comm", "farm-3"}}) == 1);
    farm.burst(0.01);
    CHECK(live.tick().collector_errors.empty());
    CHECK(live.seen.count("thread_voluntary_switches") == 4);
}

TEST_CASE("when the reader is lost, files are read from that very tick on, and the run says so once") {
    Reader reader;
    if (reader.skip()) return;
    ThreadFarm farm(3);
    Live live(&*reader.client), files(nullptr);
    for (Live* one : {&live, &files}) one->collector.watch({"farm", "app", farm.pid(), ""});
    live.tick();
    farm.burst(0.01);
    CHECK(live.tick().findings.empty());
    reader.end();
    farm.burst(0.05);
    const Tick lost = live.tick();
    REQUIRE(lost.findings.size() == 1);
    CHECK(lost.findings[0].find("thread_source is proc from here on") == 0);
    CHECK(lost.collector_errors.empty());
    tick_both(live, files);
    CHECK(live.seen.sum("thread_voluntary_switches") == files.seen.sum("thread_voluntary_switches"));
    farm.burst(0.01);
    CHECK(live.tick().findings.empty());
    tick_both(live, files);
    CHECK(live.seen.sum("thread_voluntary_switches") == files.seen.sum("thread_voluntary_switches"));
}

TEST_CASE("counts of a thread that got younger are another thread's, and end the series") {
    ThreadFiles thread(4711);
    ReadContext context{.budget = OpenFileBudget(1), .ticks_per_second = 100, .page_bytes = 4096};
    SampleSink sink;
    const auto take = [&](ThreadCounts counts) { return thread.take_counts(counts, -1, context, sink); };
    ThreadCounts counts;
    counts.tid = 4711;
    counts.alive = 1;
    counts.age_us = 1'000'000;
    std::memcpy(counts.comm, "first", 6);
    CHECK(take(counts));
    CHECK(thread.comm() == "first");
    counts.age_us = 2'000'000;
    CHECK(take(counts));
    counts.age_us = 10;
    CHECK_FALSE(take(counts));
    counts.age_us = 3'000'000;
    counts.alive = 0;
    CHECK_FALSE(take(counts));
}
