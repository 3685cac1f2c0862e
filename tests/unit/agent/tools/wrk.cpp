#include "agent/tools/wrk.hpp"
#include "common/base/json.hpp"
#include "tests/support/doctest.hpp"
#include "tests/unit/agent/tools/real_run.hpp"

using namespace perfrig;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::string report(std::string requests = "5000", std::string elapsed = "20.02s", std::string extra = "",
                   std::string rate = "249.75") {
    return "Running 20s test @ http://127.0.0.1:8080/a?b=c\n"
           "  2 threads and 64 connections\n"
           "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
           "    Latency     1.20s   310.50ms   1.99m    71.10%\n"
           "    Req/Sec     1.25k    12.00     2.00M    60.00%\n"
           "  Latency Distribution\n"
           "     50%  900.00us\n"
           "     75%   20.00ms\n"
           "     90%    1.50s \n"
           "     99%    1.10m\n"
           "  " +
           requests + " requests in " + elapsed + ", 3.50MB read\n" + extra + "Requests/sec:    " + rate +
           "\n"
           "Transfer/sec:    179.02KB\n";
}

const Json plain{{"url", "http://127.0.0.1:8080/"}, {"connections", 64}, {"threads", 2}};

Result<Reading> read(const std::string& out, ToolOutput rest = {}) {
    rest.out = out;
    return (*make_tool("wrk", plain))->parse(rest);
}

double value(const Reading& r, const char* name, const Labels& labels = {}) {
    const auto* m = r.find(name, labels);
    REQUIRE(m);
    REQUIRE(m->value);
    return *m->value;
}

} // namespace

TEST_CASE("every figure of a wrk report comes out in SI, whatever unit it was printed in") {
    const auto r = read(report());
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::ok);
    CHECK(value(*r, "requests_per_second") == 249.75);
    CHECK(value(*r, "requests") == 5000);
    CHECK(value(*r, "bytes_read") == 3.5 * 1024 * 1024);
    CHECK(value(*r, "bytes_per_second") == doctest::Approx(179.02 * 1024));
    CHECK(value(*r, "latency_seconds", {{"stat", "mean"}}) == 1.2);
    CHECK(value(*r, "latency_seconds", {{"stat", "stdev"}}) == doctest::Approx(0.3105));
    CHECK(value(*r, "latency_seconds", {{"stat", "max"}}) == doctest::Approx(119.4));
    CHECK(value(*r, "latency_seconds", {{"quantile", "0.5"}}) == doctest::Approx(0.0009));
    CHECK(value(*r, "latency_seconds", {{"quantile", "0.75"}}) == doctest::Approx(0.02));
    CHECK(value(*r, "latency_seconds", {{"quantile", "0.9"}}) == 1.5);
    CHECK(value(*r, "latency_seconds", {{"quantile", "0.99"}}) == doctest::Approx(66));
    CHECK(value(*r, "thread_requests_per_second", {{"stat", "mean"}}) == 1250);
    CHECK(value(*r, "thread_requests_per_second", {{"stat", "max"}}) == 2e6);
    CHECK(value(*r, "latency_within_stdev_ratio") == doctest::Approx(0.711));
    for (const char* kind : {"connect", "read", "write", "timeout", "status"})
        CHECK(value(*r, "errors", {{"kind", kind}}) == 0);
    CHECK(r->facts.at("connections_opened") == "64");
    CHECK(value(*r, "concurrency") == 64);
}

TEST_CASE("some errors make a wrk reading suspect, as many as requests make it invalid") {
    const std::string socket = "  Socket errors: connect 1, read 2, write 3, timeout 4\n";
    const auto some = read(report("5000", "20.02s", socket + "  Non-2xx or 3xx responses: 7\n"));
    REQUIRE(some);
    CHECK(some->status == ReadingStatus::suspect);
    CHECK(value(*some, "errors", {{"kind", "connect"}}) == 1);
    CHECK(value(*some, "errors", {{"kind", "timeout"}}) == 4);
    CHECK(value(*some, "errors", {{"kind", "status"}}) == 7);
    CHECK(some->reason.find("7 answers") != std::string::npos);

    CHECK(read(report("10", "20.02s", socket))->status == ReadingStatus::invalid);
    CHECK(read(report("11", "20.02s", socket))->status == ReadingStatus::suspect);
    const auto all = read(report("5000", "20.02s", "  Non-2xx or 3xx responses: 5000\n"));
    CHECK(all->status == ReadingStatus::invalid);
}

TEST_CASE("no request completed is invalid, and its zeros are no latencies") {
    const auto r =
        read("Running 5s test @ http://h/\n  1 threads and 2 connections\n"
             "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
             "    Latency     0.00us    0.00us   0.00us    -nan%\n"
             "    Req/Sec     0.00      0.00     0.00      -nan%\n"
             "  Latency Distribution\n     50%    0.00us\n     75%    0.00us\n     90%    0.00us\n     99%    0.00us\n"
             "  0 requests in 5.01s, 0.00B read\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n");
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::invalid);
    CHECK(!r->find("latency_seconds", {{"stat", "mean"}})->value);
    CHECK(!r->find("latency_seconds", {{"quantile", "0.99"}})->value);
    CHECK(!r->find("latency_within_stdev_ratio")->value);
    CHECK(value(*r, "requests_per_second") == 0);
}

TEST_CASE("a clock that stepped during the run is noticed") {
    const auto wrapped = read(report("5000", "307445734561.83m", "", "0.00"));
    REQUIRE(wrapped);
    CHECK(wrapped->status == ReadingStatus::invalid);
    CHECK(!wrapped->find("requests_per_second")->value);
    CHECK(!wrapped->find("elapsed_seconds")->value);
    CHECK(value(*wrapped, "requests") == 5000);

    const auto forward = read(report("5000", "1.20h"), {.elapsed_seconds = 20.1, .asked_seconds = 20});
    CHECK(forward->status == ReadingStatus::invalid);
    CHECK(forward->reason.find("clock") != std::string::npos);
}

TEST_CASE("a run far shorter than asked is too short") {
    CHECK(read(report("5000", "9.00s"))->status == ReadingStatus::too_short);
    CHECK(read(report("5000", "9.00s"), {.elapsed_seconds = 9.1, .asked_seconds = 20})->status ==
          ReadingStatus::too_short);
    CHECK(read(report("5000", "20.02s"), {.elapsed_seconds = 20.1, .asked_seconds = 20})->status == ReadingStatus::ok);
    CHECK(read(report("5000", "999.94ms"))->status == ReadingStatus::too_short);
}

TEST_CASE("a cut, doubled or foreign report is an error, never a silent nothing") {
    const auto whole = report();
    for (std::size_t end = 0; end < whole.size(); end += 7) {
        const auto r = read(whole.substr(0, end));
        if (end + 30 < whole.size()) CHECK(!r); // within the last line a shorter number may still be one
    }
    CHECK(!read(whole + whole));
    CHECK(!read("hello\n"));
    CHECK(!read("hello\n" + whole)); // no script was given that could have printed it
    CHECK(!read(whole + "hello\n"));
    auto odd = whole;
    odd.replace(odd.find("1.20s"), 5, "1.20x");
    CHECK(!read(odd));
    odd = whole;
    odd.replace(odd.find("5000 requests"), 13, "-500 requests");
    CHECK(!read(odd));
}

TEST_CASE("a failing wrk is noticed by its status or its words") {
    const auto exited = read("", {.err = "unable to connect to 127.0.0.1:1 Connection refused\n", .exit_code = 1});
    REQUIRE(exited);
    CHECK(exited->status == ReadingStatus::no_result);
    CHECK(exited->reason.find("Connection refused") != std::string::npos);
    const auto zero = read("unable to connect to 127.0.0.1:1 Connection refused\n");
    REQUIRE(zero);
    CHECK(zero->status == ReadingStatus::no_result);
    CHECK(read(report(), {.exit_code = 3})->status == ReadingStatus::invalid);
    CHECK(read(report(), {.signal = 11})->status == ReadingStatus::invalid);
    CHECK(read(report().substr(0, 80), {.signal = 9})->status == ReadingStatus::no_result);
    CHECK(read(report(), {.err = "script.lua:3: boom\n"})->status == ReadingStatus::suspect);
}

TEST_CASE("what a script prints is allowed, and its table becomes metrics") {
    auto options = plain;
    options["script"] = "done = function() end";
    const auto tool = make_tool("wrk", options);
    REQUIRE(tool);
    const auto r =
        (*tool)->parse({.out = "ready\n" + report() + "variable,value,unit\np50,1.5,ms\nlost,nan,n\n", .err = {}});
    REQUIRE(r);
    CHECK(value(*r, "script_value", {{"variable", "p50"}}) == doctest::Approx(0.0015));
    CHECK(!r->find("script_value", {{"variable", "lost"}})->value);
    CHECK(!r->find("concurrency")); // it may delay requests
}

TEST_CASE("wrk is started with whole seconds, its script as a file and the locale forced") {
    auto options = plain;
    options["headers"] = {"Host: a b", "X: y"};
    options["script"] = "-- lua";
    options["timeout"] = "5s";
    const auto call = (*make_tool("wrk", options))->invocation(ToolPhase::measure, seconds(90));
    REQUIRE(call);
    CHECK(call->argv == std::vector<std::string>{"wrk", "--latency", "-t2", "-c64", "-d90s", "--timeout", "5s", "-H",
                                                 "Host: a b", "-H", "X: y", "-s", "wrk.lua", "http://127.0.0.1:8080/"});
    REQUIRE(call->files.size() == 1);
    CHECK(call->files[0].content == "-- lua");
    CHECK(call->environment.at("LC_ALL") == "C");
    CHECK(call->environment.at("S_TIME_FORMAT") == "ISO");
    CHECK(call->at_most > seconds(95));
    CHECK(call->at_most < seconds(180));
    const auto refused = (*make_tool("wrk", plain))->invocation(ToolPhase::warm_up, milliseconds(1500));
    REQUIRE(!refused);
    CHECK(refused.error().text().find("whole seconds") != std::string::npos);
}

TEST_CASE("the real wrk, with nobody listening, gives no result and tells why") {
    if (!testing::installed("wrk")) return;
    const auto tool = make_tool("wrk", {{"url", "http://127.0.0.1:1/"}, {"connections", 1}});
    const auto run = testing::run_real(*(*tool)->invocation(ToolPhase::measure, seconds(1)));
    const auto r = (*tool)->parse(run.output());
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::no_result);
    CHECK(r->reason.find("unable to connect") != std::string::npos);
    const auto asked = testing::run_real({.argv = (*tool)->version_argv(), .environment = {}, .files = {}});
    const auto version = (*tool)->parse_version(asked.out, asked.err);
    REQUIRE(version);
    CHECK(version->find("4.") != std::string::npos);
}
