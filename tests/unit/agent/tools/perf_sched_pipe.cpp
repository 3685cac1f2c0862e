#include "agent/tools/perf_bench_report.hpp"
#include "agent/tools/tool.hpp"
#include "common/base/json.hpp"
#include "tests/support/doctest.hpp"
#include "tests/unit/agent/tools/real_run.hpp"

using namespace perfrig;
using std::chrono::seconds;

namespace {
const std::string good = "# Running 'sched/pipe' benchmark:\n"
                         "# Executed 20000 pipe operations between two processes\n\n"
                         "     Total time: 0.250 [sec]\n\n"
                         "      12.500000 usecs/op\n"
                         "          80000 ops/sec\n";
Result<Reading> read(const std::string& out, ToolOutput rest = {}, const Json& options = Json::object()) {
    rest.out = out;
    return (*make_tool("perf-sched-pipe", options))->parse(rest);
}
std::string with(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
}
} // namespace

TEST_CASE("the cost of an operation comes in seconds, with the rate and the count") {
    const auto r = read(good);
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::ok);
    CHECK(*r->find("operation_seconds")->value == doctest::Approx(12.5e-6));
    CHECK(*r->find("operations_per_second")->value == 80000);
    CHECK(*r->find("operations")->value == 20000);
    CHECK(*r->find("total_seconds")->value == 0.25);
    CHECK(r->facts.at("between") == "processes");
}

TEST_CASE("threads where processes were asked for, another suite, and cut reports are errors") {
    CHECK(!read(with(good, "two processes", "two threads")));
    CHECK(read(with(good, "two processes", "two threads"), {}, {{"threads", true}}));
    CHECK(!read(good, {}, {{"threads", true}}));
    CHECK(!read(with(good, "sched/pipe", "sched/messaging")));
    CHECK(!read(good.substr(0, good.find("usecs"))));
    CHECK(!read(good.substr(0, good.find("80000"))));
    CHECK(!read(good + good));
    CHECK(!read(""));
    CHECK(!read("0.250\n")); // the simple format says neither what nor how often
}

TEST_CASE("no loops, inf and a failing perf are noticed") {
    const auto none = read("# Running 'sched/pipe' benchmark:\n# Executed 0 pipe operations between two processes\n\n"
                           "     Total time: 0.001 [sec]\n\n            inf usecs/op\n              0 ops/sec\n");
    REQUIRE(none);
    CHECK(none->status == ReadingStatus::invalid);
    CHECK(!none->find("operation_seconds")->value);
    CHECK(read(with(good, "0.250", "0.004"))->status == ReadingStatus::too_short);
    CHECK(read(good, {.signal = 9})->status == ReadingStatus::invalid);
    const auto failed =
        read("# Running 'sched/pipe' benchmark:\n", {.err = " Error: no such thing\n", .exit_code = 129});
    REQUIRE(failed);
    CHECK(failed->status == ReadingStatus::no_result);
}

TEST_CASE("other suites are read as far as their lines are alike") {
    const auto calls =
        parse_perf_bench_report("# Running 'syscall/basic' benchmark:\n# Executed 10,000,000 getppid() calls\n"
                                "     Total time: 1.5 [sec]\n\n       0.150000 usecs/op\n      6,666,666 ops/sec\n");
    REQUIRE(calls);
    CHECK(calls->operations == 10'000'000U);
    CHECK(*calls->operations_per_second == 6'666'666);
    const auto counters = parse_perf_bench_report(
        "  1,000,000      cycles:u   # 1.2 GHz   (50.00%)\n  <not supported>      instructions\n");
    REQUIRE(counters);
    CHECK(*counters->counters.at("cycles:u").value == 1e6);
    CHECK(*counters->counters.at("cycles:u").running_ratio == 0.5);
    CHECK(!counters->counters.at("instructions").value);
}

TEST_CASE("the real perf bench, processes and threads, is read as it prints") {
    if (!testing::installed("perf")) return;
    for (const bool threads : {false, true}) {
        const auto tool = make_tool("perf-sched-pipe", {{"loops", 3000}, {"threads", threads}});
        REQUIRE(tool);
        const auto run = testing::run_real(*(*tool)->invocation(ToolPhase::measure, seconds(0)));
        const auto r = (*tool)->parse(run.output());
        REQUIRE(r);
        CHECK(*r->find("operations")->value == 3000);
        CHECK(*r->find("operation_seconds")->value > 0);
        const auto asked = testing::run_real({.argv = (*tool)->version_argv(), .environment = {}, .files = {}});
        CHECK((*tool)->parse_version(asked.out, asked.err));
    }
}
