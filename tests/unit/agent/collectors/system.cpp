#include "agent/collectors/system.hpp"
#include "agent/collectors/collector_set.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/temp_tree.hpp"
#include "tests/support/thread_farm.hpp"
#include "tests/support/ticks.hpp"

using namespace perfrig;
using perfrig::test::TempTree;
using perfrig::test::TickReader;

namespace {
template <class C> struct Driver {
    SampleSink sink;
    TickReader seen;
    const Tick& tick(C& collector) {
        collector.tick(0, sink);
        seen.add(sink.take(0));
        return seen.last();
    }
};
} // namespace

TEST_CASE("CPU times come in seconds by CPU, and a CPU that goes offline ends its series with a finding") {
    TempTree t;
    t.write("/proc/stat", "cpu  1 1 1 1\ncpu0 100 200 300 400 500 600 700 800 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 0\n");
    CpuCollector cpu(t.tree());
    Driver<CpuCollector> d;
    CHECK(d.tick(cpu).new_series.size() == 16);
    CHECK(d.seen.value("cpu_user_seconds", {{"cpu", "0"}}) == 1.0);
    CHECK(d.seen.value("cpu_steal_seconds", {{"cpu", "0"}}) == 8.0);
    CHECK(d.seen.value("cpu_idle_seconds", {{"cpu", "1"}}) == 0.04);
    t.write("/proc/stat", "cpu  1 1 1 1\ncpu0 200 200 300 400 500 600 700 800 0 0\nintr 0\n");
    const Tick& tick = d.tick(cpu);
    CHECK(tick.ended_series.size() == 8);
    CHECK(tick.findings.size() == 1);
    CHECK(d.seen.value("cpu_user_seconds", {{"cpu", "0"}}) == 2.0);
    t.write("/proc/stat", "garbage\n");
    CHECK(d.tick(cpu).collector_errors.size() == 1);
    CHECK(d.seen.last().values.empty());
}

TEST_CASE("memory comes in bytes, and what the kernel lacks is absent") {
    TempTree t;
    t.write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n");
    MemoryCollector memory(t.tree());
    Driver<MemoryCollector> d;
    CHECK(d.tick(memory).new_series.size() == 2);
    CHECK(d.seen.value("memory_available_bytes") == 51200);
    CHECK(d.seen.value("swap_used_bytes") == 6144);
    t.remove("/proc/meminfo");
    CHECK(d.tick(memory).collector_errors.empty()); // kept open
}

TEST_CASE("frequency and throttle counts are read where there are any; a file that says nothing is reported once") {
    TempTree t;
    const std::string cpu = "/sys/devices/system/cpu/cpu";
    t.write(cpu + "3/cpufreq/scaling_cur_freq", "2300000\n")
        .write(cpu + "3/thermal_throttle/core_throttle_count", "7\n");
    t.write(cpu + "4/cpufreq/scaling_cur_freq", "<unknown>\n").write(cpu + "idle/cpufreq/scaling_cur_freq", "1\n");
    FrequencyCollector frequency(t.tree());
    Driver<FrequencyCollector> d;
    CHECK(d.tick(frequency).collector_errors.size() == 1);
    CHECK(d.seen.value("cpu_frequency_hertz", {{"cpu", "3"}}) == 2.3e9);
    CHECK(d.seen.value("cpu_core_throttles", {{"cpu", "3"}}) == 7);
    CHECK(d.seen.last().values.size() == 2);
    CHECK(d.tick(frequency).collector_errors.empty());
    TempTree bare;
    FrequencyCollector none(bare.tree());
    CHECK(d.tick(none).values.empty());
}

TEST_CASE("the sink bounds errors and says each finding once") {
    SampleSink sink;
    for (int i = 0; i < 100; ++i) sink.error("broken");
    sink.finding("odd");
    sink.finding("odd");
    const Tick tick = sink.take(0);
    CHECK(tick.collector_errors.size() == SampleSink::most_errors + 1);
    CHECK(tick.collector_errors.back().find("68 more") == 0);
    CHECK(tick.findings.size() == 1);
    sink.finding("odd");
    CHECK(sink.take(0).findings.empty());
}

TEST_CASE("thread groups are names without trailing digits") {
    CHECK(thread_group_of("executor-thread-12") == "executor-thread-");
    CHECK(thread_group_of("G1 Conc#0") == "G1 Conc#");
    CHECK(thread_group_of("42") == "42");
    CHECK(thread_group_of("") == "");
}

TEST_CASE("the snapshot gives rates over the last two ticks by CPU and thread group") {
    SnapshotBuilder live;
    Tick first;
    first.at_ns = 1'000'000'000;
    const auto thread = [](const char* comm) {
        return std::map<std::string, std::string>{{"process", "web"}, {"role", "app"}, {"comm", comm}};
    };
    first.new_series = {{1, "cpu_user_seconds", "s", SeriesKind::counter, {{"cpu", "5"}}},
                        {2, "thread_cpu_user_seconds", "s", SeriesKind::counter, thread("io-1")},
                        {3, "thread_cpu_user_seconds", "s", SeriesKind::counter, thread("io-2")},
                        {4, "thread_voluntary_switches", "count", SeriesKind::counter, thread("io-2")},
                        {5, "process_rss_bytes", "B", SeriesKind::gauge, {{"process", "web"}, {"role", "app"}}}};
    first.values = {{1, 10}, {2, 1}, {3, 1}, {4, 100}, {5, 4096}};
    live.add(first);
    CHECK(live.snapshot().window_seconds == 0);
    CHECK(live.snapshot().groups.at(0).user_cpus == 0);
    Tick second;
    second.at_ns = 3'000'000'000;
    second.values = {{1, 11}, {2, 2}, {3, 1.5}, {4, 140}, {5, 8192}};
    second.collector_errors = {"x"};
    live.add(second);
    const ProcessSnapshot s = live.snapshot();
    CHECK(s.window_seconds == 2);
    CHECK(s.cpus.at(0).cpu == 5);
    CHECK(s.cpus.at(0).user == 0.5);
    REQUIRE(s.groups.size() == 1);
    CHECK(s.groups[0].group == "io-");
    CHECK(s.groups[0].threads == 2);
    CHECK(s.groups[0].user_cpus == 0.75);
    CHECK(s.groups[0].voluntary_switches_per_second == 20);
    CHECK(s.memory.at(0).rss_bytes == 8192);
    CHECK(s.errors_total == 1);
    Tick third;
    third.at_ns = 4'000'000'000;
    third.values = {{2, 2}};
    third.ended_series = {3, 4};
    live.add(third);
    CHECK(live.snapshot().groups.at(0).threads == 1);
    CHECK(live.snapshot().cpus.empty());
}

TEST_CASE("the whole set ticks on this machine, and new ids begin when the series restart") {
    SystemClock clock;
    CollectorSet set(FileTree("/"), clock);
    test::ThreadFarm farm(2);
    set.watch({"farm", "app", farm.pid(), ""});
    TickReader seen;
    const Tick first = set.tick();
    seen.add(first);
    CHECK(first.collector_errors.empty());
    CHECK(first.took_ns > 0);
    CHECK(seen.count("cpu_user_seconds") >= 1);
    CHECK(seen.value("memory_available_bytes").value_or(0) > 0);
    CHECK(seen.value("agent_cpu_seconds").value_or(0) > 0);
    CHECK(seen.count("thread_cpu_user_seconds") == 3);
    farm.burst(0.3);
    const Tick second = set.tick();
    CHECK(second.new_series.empty());
    const ProcessSnapshot live = set.snapshot();
    CHECK(live.window_seconds >= 0.3);
    double busy = 0;
    for (const ThreadGroupRates& g : live.groups)
        if (g.group == "farm-") busy = g.user_cpus + g.system_cpus;
    CHECK(busy > 0.1);
    const AffinityNews news = set.take_affinity_news();
    CHECK(news.changes.size() == 3);
    CHECK(news.looks.at("farm") == 2 * 3);
    set.restart_series();
    const Tick anew = set.tick();
    REQUIRE(anew.new_series.size() == first.new_series.size());
    CHECK(anew.new_series.front().id == 1);
    CHECK(anew.values.size() == second.values.size());
}
