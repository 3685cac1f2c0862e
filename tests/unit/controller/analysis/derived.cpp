#include "controller/analysis/derived.hpp"
#include "common/experiment/tool_options.hpp"
#include "tests/support/doctest.hpp"

#include <algorithm>

using namespace perfrig;
using namespace perfrig::analysis;

namespace {

constexpr std::int64_t s = 1'000'000'000;

model::Series counter(const std::string& name, model::Labels labels, std::vector<model::Point> points) {
    model::Series out;
    out.info.name = name;
    out.info.labels = std::move(labels);
    out.info.counter = true;
    out.points = std::move(points);
    return out;
}

// One reading a second from 5 s to 25 s, growing by `rate` a second.
model::Series steady(const std::string& name, model::Labels labels, double rate, int from = 5, int to = 25) {
    std::vector<model::Point> points;
    for (int tick = from; tick <= to; ++tick) points.push_back({tick * s + s / 2, rate * (tick - from)});
    return counter(name, std::move(labels), std::move(points));
}

void add_cpu(RunData& data, const std::string& cpu, double user, double system) {
    data.series.push_back(steady("cpu_user_seconds", {{"cpu", cpu}}, user));
    data.series.push_back(steady("cpu_nice_seconds", {{"cpu", cpu}}, 0));
    data.series.push_back(steady("cpu_system_seconds", {{"cpu", cpu}}, system));
    data.series.push_back(steady("cpu_irq_seconds", {{"cpu", cpu}}, 0));
    data.series.push_back(steady("cpu_softirq_seconds", {{"cpu", cpu}}, 0.05));
}

model::Labels thread(const std::string& tid, const std::string& comm) {
    return {{"process", "app"}, {"role", "app"}, {"pid", "10"}, {"tid", tid}, {"comm", comm}};
}

model::Metric rate_of(double value) {
    model::Metric out;
    out.name = "requests_per_second";
    out.unit = "1/s";
    out.value = value;
    out.window_start_ns = 10 * s;
    out.window_end_ns = 20 * s;
    return out;
}

// Measure from 10 s to 20 s: readings at 10.5 ... 19.5.
RunData run() {
    RunData data;
    data.run = 1;
    model::Phase warm_up, measure;
    warm_up.name = "warm_up";
    warm_up.end_ns = 10 * s;
    measure.name = "measure";
    measure.start_ns = 10 * s;
    measure.end_ns = 20 * s;
    data.phases = {warm_up, measure};
    model::Process process;
    process.name = "app";
    process.started_ns = s;
    data.processes = {process};
    return data;
}

std::optional<double> value(const Evaluation& e, const std::string& name, const model::Labels& labels) {
    for (const auto& one : e.metrics) CHECK_MESSAGE(is_reserved_metric(one.name), one.name); // no tool may take it
    for (const auto& one : e.metrics)
        if (one.name == name && one.labels == labels) return one.value;
    return std::nullopt;
}

bool says(const Evaluation& e, const std::string& text) {
    return std::ranges::any_of(e.findings, [&](const auto& f) { return f.message.find(text) != std::string::npos; });
}

} // namespace

TEST_CASE("busy is the CPU seconds of the role's CPUs over their time, in the measure phase alone") {
    RunData data = run();
    data.roles = {{"app", "0-1"}};
    add_cpu(data, "0", 0.4, 0.2);
    add_cpu(data, "1", 0.8, 0.1);
    add_cpu(data, "2", 1.0, 0.0);             // nobody's
    for (auto& point : data.series[0].points) // what was before and after measure must not count
        if (point.time_ns > 20 * s) point.value += 1000;
    const auto out = derive(data);
    CHECK(value(out, "cpu_busy_ratio", {{"role", "app"}, {"mode", "user"}}).value() == doctest::Approx(0.6));
    CHECK(value(out, "cpu_busy_ratio", {{"role", "app"}, {"mode", "system"}}).value() == doctest::Approx(0.2));
    CHECK(value(out, "cpu_busy_ratio", {{"role", "app"}, {"mode", "total"}}).value() == doctest::Approx(0.8));
    CHECK(out.metrics.front().window_start_ns == 10 * s + s / 2);
    CHECK(out.metrics.front().window_end_ns == 19 * s + s / 2);
}

TEST_CASE("service demand is cores times busy over throughput") {
    RunData data = run();
    data.roles = {{"app", "0-3"}};
    for (const char* cpu : {"0", "1", "2", "3"}) add_cpu(data, cpu, 0.9, 0.048); // 0.998 busy with softirq
    data.metrics = {rate_of(15'690)};
    // The lab's own figures: 4 x 0.998 / 15,690 s = 0.2544 ms.
    CHECK(value(derive(data), "service_demand_seconds", {{"role", "app"}}).value() ==
          doctest::Approx(0.2544e-3).epsilon(1e-3));
}

TEST_CASE("a missing input gives no metric and a finding that names it") {
    RunData data = run();
    data.roles = {{"app", "0"}, {"db", "7"}};
    add_cpu(data, "0", 0.4, 0.2);
    const auto out = derive(data);
    CHECK(value(out, "cpu_busy_ratio", {{"role", "app"}, {"mode", "total"}}));
    CHECK(!value(out, "cpu_busy_ratio", {{"role", "db"}, {"mode", "total"}}));
    CHECK(says(out, "cpu_user_seconds of CPU 7"));
    CHECK(!value(out, "service_demand_seconds", {{"role", "app"}}));
    CHECK(says(out, "no tool of the run reports"));
    CHECK(says(out, "no run_queue_wait_ratio of app"));
    for (const auto& metric : out.metrics) CHECK(metric.value.has_value());
}

TEST_CASE("a run without a measure phase gets one finding and nothing else") {
    RunData data = run();
    data.phases.pop_back();
    const auto out = derive(data);
    CHECK(out.metrics.empty());
    CHECK(out.findings.size() == 1);
}

TEST_CASE("a throughput of another window is not divided by") {
    RunData data = run();
    data.roles = {{"app", "0"}};
    add_cpu(data, "0", 0.4, 0.2);
    data.metrics = {rate_of(100)};
    data.metrics[0].window_end_ns = 13 * s;
    const auto out = derive(data);
    CHECK(!value(out, "service_demand_seconds", {{"role", "app"}}));
    CHECK(says(out, "another window"));
}

TEST_CASE("a worthless reading and two tools give no throughput") {
    RunData data = run();
    data.roles = {{"app", "0"}};
    add_cpu(data, "0", 0.4, 0.2);
    data.metrics = {rate_of(100)};
    data.metrics[0].status = "too_short";
    CHECK(!value(derive(data), "service_demand_seconds", {{"role", "app"}}));
    data.metrics = {rate_of(100), rate_of(200)};
    data.metrics[0].labels = {{"tool", "a"}};
    data.metrics[1].labels = {{"tool", "b"}};
    CHECK(says(derive(data), "several tools"));
}

TEST_CASE("switches are summed over threads, per second and per request") {
    RunData data = run();
    data.metrics = {rate_of(50)};
    data.series = {steady("thread_voluntary_switches", thread("11", "worker-1"), 30),
                   steady("thread_voluntary_switches", thread("12", "worker-2"), 70),
                   steady("thread_involuntary_switches", thread("11", "worker-1"), 5)};
    const auto out = derive(data);
    CHECK(value(out, "context_switches_per_second", {{"process", "app"}, {"kind", "voluntary"}}).value() ==
          doctest::Approx(100));
    CHECK(value(out, "context_switches_per_request", {{"process", "app"}, {"kind", "voluntary"}}).value() ==
          doctest::Approx(2));
    CHECK(value(out, "context_switches_per_request", {{"process", "app"}, {"kind", "involuntary"}}).value() ==
          doctest::Approx(0.1));
    CHECK(
        value(out, "thread_group_switches_per_second", {{"process", "app"}, {"group", "worker"}, {"kind", "voluntary"}})
            .value() == doctest::Approx(100));
}

TEST_CASE("run-queue wait is a share of the threads' life and of their demand") {
    RunData data = run();
    data.series = {steady("thread_run_queue_wait_seconds", thread("11", "a"), 0.1),
                   steady("thread_run_queue_wait_seconds", thread("12", "b"), 0.3),
                   steady("thread_cpu_seconds", thread("11", "a"), 0.2),
                   steady("thread_cpu_seconds", thread("12", "b"), 0.2)};
    const auto out = derive(data);
    CHECK(value(out, "run_queue_wait_ratio", {{"process", "app"}, {"of", "thread"}}).value() == doctest::Approx(0.2));
    CHECK(value(out, "run_queue_wait_ratio", {{"process", "app"}, {"of", "demand"}}).value() == doctest::Approx(0.5));
}

TEST_CASE("a thread born within measure counts from zero, a renamed one from where it was") {
    RunData data = run();
    auto born = counter("thread_cpu_seconds", thread("12", "new"), {{15 * s, 0.7}, {16 * s, 1.0}});
    auto renamed =
        counter("thread_cpu_seconds", thread("11", "late-name"), {{14 * s + s / 2, 100.0}, {15 * s + s / 2, 100.5}});
    auto before = counter("thread_cpu_seconds", thread("11", "name"),
                          {{5 * s, 90.0}, {10 * s + s / 2, 99.0}, {14 * s + s / 2, 100.0}});
    data.series = {born, renamed, before, steady("process_cpu_seconds", {{"process", "app"}, {"pid", "10"}}, 0.5)};
    // born 1.0, before the change of name 1.0, after it 0.5, against 0.5 x 9 s of the process
    CHECK(value(derive(data), "thread_coverage_ratio", {{"process", "app"}}).value() == doctest::Approx(2.5 / 4.5));
}

TEST_CASE("a counter that went backward is no reading") {
    RunData data = run();
    data.series = {counter("agent_cpu_seconds", {}, {{11 * s, 5.0}, {19 * s, 1.0}})};
    const auto out = derive(data);
    CHECK(!value(out, "agent_cpu_seconds", {}));
    CHECK(says(out, "no agent_cpu_seconds"));
}

namespace {

model::Series process(const std::string& name, const std::string& role, double rate, int from = 5, int to = 25) {
    return steady("process_cpu_seconds", {{"process", name}, {"role", role}, {"pid", name}}, rate, from, to);
}

double other(const Evaluation& e, const char* role, const char* of = "capacity") {
    const auto found = value(e, "cpu_other_ratio", {{"role", role}, {"of", of}});
    REQUIRE(found);
    return *found;
}

const model::Finding* found(const Evaluation& e, const std::string& check) {
    const auto at = std::ranges::find(e.findings, check, &model::Finding::check_name);
    return at == e.findings.end() ? nullptr : &*at;
}

} // namespace

TEST_CASE("CPU time that no process of the run used is others': measured, and found where it is much") {
    RunData data = run();
    data.roles = {{"app", "0-1"}};
    add_cpu(data, "0", 0.6, 0.2); // with 0.05 of interrupts, which are nobody's
    add_cpu(data, "1", 0.3, 0.1);
    data.series.push_back(process("app", "app", 0.9));
    const auto out = derive(data);
    CHECK(other(out, "app") == doctest::Approx(0.3 / 2));
    CHECK(other(out, "app", "busy") == doctest::Approx(0.3 / 1.2));
    REQUIRE(found(out, "cpu_other"));
    CHECK(found(out, "cpu_other")->severity == model::Severity::warning);
    CHECK(found(out, "cpu_other")->message.find("15.0 % of their time and 25.0 %") != std::string::npos);

    data.series.back() = process("app", "app", 1.19);
    CHECK(other(derive(data), "app") == doctest::Approx(0.005));
    CHECK(!found(derive(data), "cpu_other"));
    data.series.back() = process("app", "app", 1.24); // interrupts that hit it are part of its own count
    CHECK(other(derive(data), "app") == 0);
}

TEST_CASE("a little CPU time of others is found where the run's own is little too") {
    RunData data = run();
    data.roles = {{"app", "0"}};
    add_cpu(data, "0", 0.1, 0);
    data.series.push_back(process("app", "app", 0.07)); // 3 % of the CPU, 30 % of what was busy
    CHECK(found(derive(data), "cpu_other"));
    data.series.back() = process("app", "app", 0.085); // 1.5 %: ticks may be wrong by that
    CHECK(!found(derive(data), "cpu_other"));
}

TEST_CASE("roles that share CPUs are counted together, the agent as one of the monitor's") {
    RunData data = run();
    data.roles = {{"app", "0"}, {"load", "1"}, {"monitor", "1"}};
    add_cpu(data, "0", 0.5, 0);
    add_cpu(data, "1", 0.9, 0);
    data.series.push_back(process("app", "app", 0.5));
    data.series.push_back(process("wrk", "load", 0.6));
    data.series.push_back(steady("agent_cpu_seconds", {}, 0.1));
    const auto out = derive(data);
    CHECK(other(out, "app") == 0);
    CHECK(other(out, "load") == doctest::Approx(0.2));
    CHECK(other(out, "monitor") == doctest::Approx(0.2));
    REQUIRE(found(out, "cpu_other"));
    CHECK(found(out, "cpu_other")->subject == "load, monitor");
    CHECK(std::ranges::count(out.findings, "cpu_other", &model::Finding::check_name) == 1);
}

TEST_CASE("what a tool used after its last reading is not taken for others'") {
    RunData data = run();
    data.roles = {{"load", "0"}};
    add_cpu(data, "0", 0.9, 0);
    // It began after the first reading of the CPUs and was last read a second before the last.
    data.series.push_back(counter("process_cpu_seconds", {{"process", "wrk"}, {"role", "load"}, {"pid", "9"}}, {}));
    for (int tick = 11; tick <= 18; ++tick) data.series.back().points.push_back({tick * s + s / 2, 0.9 * (tick - 10)});
    const auto out = derive(data);
    CHECK(other(out, "load") == doctest::Approx(0));
    const auto metric = std::ranges::find(out.metrics, "cpu_other_ratio", &model::Metric::name);
    CHECK(metric->window_start_ns == 10 * s + s / 2);
    CHECK(metric->window_end_ns == 18 * s + s / 2);
}

TEST_CASE("processes too short to be sampled are covered by what their parent waited for") {
    RunData data = run();
    data.roles = {{"app", "0"}};
    add_cpu(data, "0", 0.8, 0);
    const model::Labels parent{{"process", "app"}, {"role", "app"}, {"pid", "10"}};
    data.series.push_back(steady("process_cpu_seconds", parent, 0.1));
    CHECK(other(derive(data), "app") == doctest::Approx(0.7));
    data.series.push_back(steady("process_waited_children_cpu_seconds", parent, 0.7));
    CHECK(other(derive(data), "app") == doctest::Approx(0).epsilon(1e-9));
    // A child that was sampled is in what was waited for: not counted twice.
    data.series.push_back(counter("process_cpu_seconds", {{"process", "app"}, {"role", "app"}, {"pid", "11"}},
                                  {{12 * s + s / 2, 0.2}, {13 * s + s / 2, 0.9}}));
    data.series[data.series.size() - 2] = steady("process_waited_children_cpu_seconds", parent, 0.3);
    CHECK(other(derive(data), "app") == doctest::Approx(0.4));
}

TEST_CASE("of what a parent waited for, only what happened in the window is the run's, and that once") {
    const model::Labels parent{{"process", "app"}, {"role", "app"}, {"pid", "10"}};
    const model::Labels child{{"process", "app"}, {"role", "app"}, {"pid", "11"}};
    RunData data = run();
    data.roles = {{"app", "0"}};
    add_cpu(data, "0", 0.8, 0); // 7.2 s from 10.5 to 19.5
    data.series.push_back(steady("process_cpu_seconds", parent, 0));
    RunData nested = data;
    // The child itself used 1 s and waited for 5 s of what nobody saw; its parent waits for all of that.
    nested.series.push_back(counter("process_cpu_seconds", child, {{12 * s + s / 2, 0.0}, {14 * s + s / 2, 1.0}}));
    nested.series.push_back(
        counter("process_waited_children_cpu_seconds", child, {{12 * s + s / 2, 0.0}, {14 * s + s / 2, 5.0}}));
    const auto waited = [&](double seconds) {
        return counter("process_waited_children_cpu_seconds", parent,
                       {{10 * s + s / 2, 0.0}, {15 * s + s / 2, seconds}, {19 * s + s / 2, seconds}});
    };
    nested.series.push_back(waited(6));
    CHECK(other(derive(nested), "app") == doctest::Approx((7.2 - 6) / 9));
    // The child used 1 s a second since 5.5 s, and ended after 12.5 s.
    data.series.push_back(steady("process_cpu_seconds", child, 1, 5, 12));
    data.series.push_back(waited(7));
    CHECK(other(derive(data), "app") == doctest::Approx((7.2 - 2) / 9));
}

TEST_CASE("processes that came and went between two readings are missing from what the threads cover") {
    RunData data = run();
    const model::Labels parent{{"process", "app"}, {"role", "app"}, {"pid", "10"}};
    data.series = {steady("thread_cpu_seconds", thread("10", "sh"), 0.1), steady("process_cpu_seconds", parent, 0.1),
                   steady("process_waited_children_cpu_seconds", parent, 0.7)};
    const auto out = derive(data);
    CHECK(value(out, "thread_coverage_ratio", {{"process", "app"}}).value() == doctest::Approx(0.9 / 7.2));
    REQUIRE(found(out, "thread_coverage"));
    CHECK(found(out, "thread_coverage")->message.find("13 % of its CPU time") != std::string::npos);
}

TEST_CASE("a process of the role whose CPU time was not read leaves no ratio of others") {
    RunData data = run();
    data.processes[0].role = "app";
    data.roles = {{"app", "0"}};
    add_cpu(data, "0", 0.8, 0);
    const auto out = derive(data);
    CHECK(!value(out, "cpu_other_ratio", {{"role", "app"}, {"of", "capacity"}}));
    CHECK(says(out, "no cpu_other_ratio of app: the CPU seconds of app were not read"));
}

TEST_CASE("threads that sampling missed are a finding") {
    RunData data = run();
    data.series = {steady("thread_cpu_seconds", thread("11", "a"), 0.4),
                   steady("process_cpu_seconds", {{"process", "app"}, {"pid", "10"}}, 0.5)};
    REQUIRE(found(derive(data), "thread_coverage"));
    CHECK(found(derive(data), "thread_coverage")->message.find("80 % of its CPU time") != std::string::npos);
    data.series[0] = steady("thread_cpu_seconds", thread("11", "a"), 0.48);
    CHECK(!found(derive(data), "thread_coverage"));
}

TEST_CASE("a mean latency that contradicts the rate is found, and how full the loop was is a metric") {
    RunData data = run();
    const auto tool = [](const char* name, double value, model::Labels labels = {}) {
        model::Metric out = rate_of(value);
        out.name = name;
        out.labels = std::move(labels);
        return out;
    };
    data.metrics = {tool("requests_per_second", 20'000), tool("concurrency", 1),
                    tool("latency_seconds", 200e-6, {{"stat", "mean"}})};
    auto out = derive(data);
    CHECK(value(out, "in_flight_ratio", {}).value() == doctest::Approx(4));
    REQUIRE(found(out, "little_law"));
    CHECK(found(out, "little_law")->message.find("a mean of 200 us at 20000/s means 4 requests under way, with 1") !=
          std::string::npos);
    data.metrics[2].value = 46e-6;
    CHECK(!found(derive(data), "little_law"));
    data.metrics[2].value = 25e-6;
    CHECK(found(derive(data), "little_law")->message.find("without a request for 50 %") != std::string::npos);
    data.metrics.erase(data.metrics.begin() + 1); // an open loop
    out = derive(data);
    CHECK(!value(out, "in_flight_ratio", {}));
    CHECK(!found(out, "little_law"));
}

TEST_CASE("thread groups are names without their numbers") {
    CHECK(thread_group("executor-thread-12") == "executor-thread");
    CHECK(thread_group("http#3") == "http");
    CHECK(thread_group("pool-2-thread-13") == "pool-2-thread");
    CHECK(thread_group("ForkJoinPool-1/") == "ForkJoinPool-1/");
    CHECK(thread_group("nginx") == "nginx");
    CHECK(thread_group("42") == "42");
    CHECK(thread_group("") == "");
}

TEST_CASE("no series that derived metrics are read from may be a tool's") {
    for (const auto name : series_wanted()) CHECK_MESSAGE(is_reserved_metric(name), name);
}

TEST_CASE("a measure phase too short for two readings gives one reason instead of numbers made of ticks") {
    RunData data = run();
    data.roles["app"] = "0";
    data.metrics = {rate_of(1000)};
    data.phases.back().end_ns = 10 * s + s / 4;
    const Evaluation out = derive(data);
    CHECK(out.metrics.empty());
    REQUIRE(out.findings.size() == 1);
    CHECK(out.findings[0].message.find("measured for 0.25 s") != std::string::npos);
}
