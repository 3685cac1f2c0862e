#include "agent/tools/pgbench.hpp"
#include "common/base/json.hpp"
#include "tests/support/doctest.hpp"
#include "tests/unit/agent/tools/real_run.hpp"

using namespace perfrig;
using std::chrono::seconds;

namespace {

const std::string head = "pgbench (15.20 (Debian 15.20-0+deb12u1))\n"
                         "transaction type: multiple scripts\n"
                         "scaling factor: 1\n"
                         "query mode: prepared\n"
                         "number of clients: 2\n"
                         "number of threads: 1\n"
                         "maximum number of tries: 1\n"
                         "duration: 10 s\n";
const std::string good = head + "number of transactions actually processed: 2000\n"
                                "number of failed transactions: 0 (0.000%)\n"
                                "latency average = 9.900 ms\n"
                                "latency stddev = 1.500 ms\n"
                                "initial connection time = 5.390 ms\n"
                                "tps = 200.125 (without initial connection time)\n";
const std::string sections = "SQL script 1: a.sql\n"
                             " - weight: 1 (targets 25.0% of total)\n"
                             " - 500 transactions (25.0% of total, tps = 50.031250)\n"
                             " - number of failed transactions: 0 (0.000%)\n"
                             " - latency average = 8.000 ms\n"
                             " - latency stddev = 0.105 ms\n"
                             " - statement latencies in milliseconds and failures:\n"
                             "         7.500           0  SELECT 1;\n"
                             "SQL script 2: b.sql\n"
                             " - weight: 3 (targets 75.0% of total)\n"
                             " - 1500 transactions (75.0% of total, tps = 150.093750)\n"
                             " - number of failed transactions: 0 (0.000%)\n"
                             " - latency average = 10.500 ms\n"
                             " - latency stddev = 0.170 ms\n"
                             " - statement latencies in milliseconds and failures:\n"
                             "         0.006           0  \\set x random(1,10)\n"
                             "        10.100           2  SELECT :x;\n";

Result<Reading> read(const std::string& out, ToolOutput rest = {}, const Json& options = Json::object()) {
    rest.out = out;
    return (*make_tool("pgbench", options))->parse(rest);
}

std::string with(std::string text, const std::string& from, const std::string& to) {
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
}

double value(const Reading& r, const char* name, const Labels& labels = {}) {
    const auto* m = r.find(name, labels);
    REQUIRE(m);
    REQUIRE(m->value);
    return *m->value;
}

} // namespace

TEST_CASE("a pgbench report is read whole, each script and statement by its labels") {
    const auto r = read(good + sections);
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::ok);
    CHECK(value(*r, "transactions_per_second") == 200.125);
    CHECK(value(*r, "transactions") == 2000);
    CHECK(value(*r, "failed_transactions") == 0);
    CHECK(value(*r, "latency_seconds", {{"stat", "mean"}}) == doctest::Approx(0.0099));
    CHECK(value(*r, "latency_seconds", {{"stat", "stdev"}}) == doctest::Approx(0.0015));
    CHECK(value(*r, "initial_connection_time_seconds") == doctest::Approx(0.00539));
    CHECK(value(*r, "transactions_per_second", {{"script", "2"}}) == doctest::Approx(150.09375));
    CHECK(value(*r, "latency_seconds", {{"script", "1"}, {"stat", "mean"}}) == doctest::Approx(0.008));
    const Labels second{{"script", "2"}, {"statement", "2"}, {"text", "SELECT :x;"}};
    CHECK(value(*r, "statement_latency_seconds", second) == doctest::Approx(0.0101));
    CHECK(value(*r, "statement_failures", second) == 2);
    CHECK(r->facts.at("version") == "15.20");
    CHECK(r->facts.at("query_mode") == "prepared");
    CHECK(r->facts.at("script_2") == "b.sql");
}

TEST_CASE("of two rates the one without connecting is taken, and reconnecting is remarked") {
    const auto old = read(with(good, "tps = 200.125 (without initial connection time)\n",
                               "tps = 190.5 (including connections establishing)\n"
                               "tps = 200.5 (excluding connections establishing)\n"));
    REQUIRE(old);
    CHECK(value(*old, "transactions_per_second") == 200.5);
    CHECK(value(*old, "transactions_per_second_including_connections") == 190.5);
    const auto each = read(with(good, "without initial connection time", "including reconnection times"));
    REQUIRE(each);
    CHECK(each->status == ReadingStatus::ok);
    CHECK(each->reason.find("not comparable") != std::string::npos);
}

TEST_CASE("aborted clients void a report that otherwise looks fine") {
    const std::string said =
        "pgbench: error: client 1 aborted in command 4 (SQL) of script 0; perhaps the backend died\n"
        "pgbench: error: Run was aborted; the above results are incomplete.\n";
    const auto r = read(good, {.err = said, .exit_code = 2});
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::invalid);
    CHECK(read(good, {.err = said})->status == ReadingStatus::invalid); // old versions exit 0
    CHECK(read(good, {.exit_code = 2})->status == ReadingStatus::invalid);
}

TEST_CASE("failed transactions make it suspect, none processed invalid, with no number for NaN") {
    const auto failed = read(with(good, "failed transactions: 0 (0.000%)", "failed transactions: 500 (20.000%)"));
    REQUIRE(failed);
    CHECK(failed->status == ReadingStatus::suspect);
    CHECK(failed->reason.find("20 %") != std::string::npos);
    const auto none =
        read(head + "number of transactions actually processed: 0\nnumber of failed transactions: 0 (NaN%)\n");
    REQUIRE(none);
    CHECK(none->status == ReadingStatus::invalid);
    CHECK(!none->find("failed_transactions_ratio")->value);
    CHECK(!none->find("transactions_per_second")->value);
    CHECK(!none->find("latency_seconds", {{"stat", "mean"}})->value);
}

TEST_CASE("a rate above capacity is told from one that was kept") {
    const auto lagging =
        with(good, "initial connection", "rate limit schedule lag: avg 1500.0 (max 3000.1) ms\ninitial connection");
    const auto slow = with(lagging, "latency average = 9.900", "latency average = 1509.900");
    CHECK(read(slow)->status == ReadingStatus::overload);
    const auto kept =
        with(good, "initial connection", "rate limit schedule lag: avg 0.2 (max 9.0) ms\ninitial connection");
    CHECK(read(kept)->status == ReadingStatus::ok);
    CHECK(read(good, {}, {{"rate", 205}})->status == ReadingStatus::ok);
    CHECK(!read(good, {}, {{"rate", 205}})->find("concurrency")); // an open loop
    CHECK(read(good, {})->find("concurrency")->value == 2);
    CHECK(read(good, {}, {{"rate", 400}})->status == ReadingStatus::overload);
    const auto skipped =
        with(good, "latency average", "number of transactions skipped: 300 (13.000%)\nlatency average");
    CHECK(read(skipped)->status == ReadingStatus::overload);
}

TEST_CASE("a pgbench that could not start gives no result with the server's reason") {
    const auto r =
        read("", {.err = "pgbench: error: connection to server on socket \"/x/.s.PGSQL.1\" failed: No such file\n"
                         "\tIs the server running locally?\n",
                  .exit_code = 1});
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::no_result);
    CHECK(r->reason.find("No such file") != std::string::npos);
}

TEST_CASE("a cut report and unknown lines in it are errors") {
    CHECK(!read(""));
    CHECK(!read("garbage\n"));
    CHECK(!read(head));
    CHECK(!read(with(good, "tps = 200.125 (without initial connection time)\n", "")));
    CHECK(!read(with(good, "tps = 200.125", "tps = fast")));
    CHECK(!read(with(good, "latency stddev = 1.500 ms", "latency stddev = 1.500 s")));
    CHECK(!read(good + "something new = 3\n"));
}

TEST_CASE("a run far shorter than asked is too short") {
    CHECK(read(good, {.elapsed_seconds = 10.2, .asked_seconds = 10})->status == ReadingStatus::ok);
    CHECK(read(good, {.elapsed_seconds = 4, .asked_seconds = 10})->status == ReadingStatus::too_short);
}

TEST_CASE("progress lines are the live rate; placeholders and other lines are not") {
    const auto tool = make_tool("pgbench", Json::object());
    const auto live = (*tool)->parse_live_line(
        "progress: 1.0 s, 168.5 tps, lat 0.286 ms stddev 0.114, 0 failed, lag 0.130 ms, 0 skipped", true);
    REQUIRE(live);
    CHECK(live->name == "transactions_per_second");
    CHECK(live->unit == "1/s");
    CHECK(live->value == 168.5);
    CHECK((*tool)->parse_live_line("progress: 12.0 s, 3.0 tps, lat 5.1 ms stddev 1.0", true)); // before version 15
    CHECK(!(*tool)->parse_live_line("progress: 2.0 s, -nan tps, lat NaN ms stddev NaN, 0 failed", true));
    CHECK(!(*tool)->parse_live_line("progress: 2.0 s, 5.0 tps, what 3", true));
    CHECK(!(*tool)->parse_live_line("starting vacuum...end.", true));
}

TEST_CASE("pgbench is started with scripts as files and the connection in the environment") {
    const auto tool = make_tool("pgbench", {{"uri", "postgresql://u:pw@/d?host=/tmp"},
                                            {"clients", "4"},
                                            {"threads", 2},
                                            {"protocol", "prepared"},
                                            {"scripts", {"SELECT 1;", "SELECT 2;"}},
                                            {"rate", 100},
                                            {"latency_limit", "50ms"},
                                            {"variables", {{"a", "1"}}},
                                            {"per_statement", true}});
    REQUIRE(tool);
    const auto call = (*tool)->invocation(ToolPhase::measure, seconds(5));
    REQUIRE(call);
    CHECK(call->argv == std::vector<std::string>{"pgbench",      "-P", "1",   "-T",       "5",  "-c",           "4",
                                                 "-j",           "2",  "-M",  "prepared", "-f", "script-1.sql", "-f",
                                                 "script-2.sql", "-R", "100", "-L",       "50", "-D",           "a=1",
                                                 "-r",           "-n"});
    CHECK(call->environment.at("PGDATABASE") == "postgresql://u:pw@/d?host=/tmp");
    CHECK(call->environment.at("LC_ALL") == "C");
    CHECK(call->files[1].content == "SELECT 2;");
    CHECK(call->at_most >= seconds(15));
}

TEST_CASE("the real pgbench, with no server there, gives no result and tells why") {
    if (!testing::installed("pgbench")) return;
    const auto tool =
        make_tool("pgbench", {{"host", "/nonexistent"}, {"port", 5999}, {"database", "d"}, {"select_only", true}});
    REQUIRE(tool);
    const auto run = testing::run_real(*(*tool)->invocation(ToolPhase::measure, seconds(1)));
    const auto r = (*tool)->parse(run.output());
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::no_result);
    CHECK(r->reason.find("5999") != std::string::npos);
    const auto asked = testing::run_real({.argv = (*tool)->version_argv(), .environment = {}, .files = {}});
    CHECK((*tool)->parse_version(asked.out, asked.err));
}
