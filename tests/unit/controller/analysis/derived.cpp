#include "controller/analysis/derived.hpp"
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

TEST_CASE("thread groups are names without their numbers") {
    CHECK(thread_group("executor-thread-12") == "executor-thread");
    CHECK(thread_group("http#3") == "http");
    CHECK(thread_group("pool-2-thread-13") == "pool-2-thread");
    CHECK(thread_group("ForkJoinPool-1/") == "ForkJoinPool-1/");
    CHECK(thread_group("nginx") == "nginx");
    CHECK(thread_group("42") == "42");
    CHECK(thread_group("") == "");
}
