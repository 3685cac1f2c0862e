#include "common/base/json.hpp"
#include "tests/support/doctest.hpp"
#include "tests/unit/agent/tools/real_run.hpp"

using namespace perfrig;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
Json metric(const char* pattern, Json more = Json::object()) {
    more["name"] = "rate";
    more["unit"] = "1/s";
    more["pattern"] = pattern;
    return {{"command", {"prog"}}, {"metrics", {more}}};
}
Json pointed(const char* pointer) {
    return {{"command", {"prog"}},
            {"metrics", {{{"name", "lat"}, {"unit", "s"}, {"pointer", pointer}, {"scale", 1e-3}}}}};
}
Result<Reading> read(const Json& options, ToolOutput output) {
    const auto tool = make_tool("command", options);
    REQUIRE(tool);
    return (*tool)->parse(output);
}
} // namespace

TEST_CASE("a declared pattern finds its number, scaled and labelled") {
    const auto r = read(metric("rate: ([0-9.,e+]+)k", {{"scale", 1000}, {"labels", {{"op", "get"}}}}),
                        {.out = "hello\nrate: 1.5k per s\r\n", .err = {}});
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::ok);
    REQUIRE(r->find("rate", {{"op", "get"}}));
    CHECK(*r->find("rate", {{"op", "get"}})->value == 1500);
    CHECK(*read(metric("rate: (\\S+)"), {.out = "rate: 12,345.5\n", .err = {}})->metrics[0].value == 12345.5);
    CHECK(*read(metric("rate: (\\S+)", {{"from", "stderr"}}), {.out = "rate: 1\n", .err = "rate: 2\n"})
               ->metrics[0]
               .value == 2);
}

TEST_CASE("a missing match, several matches and what is no number are errors") {
    const ToolOutput two{.out = "rate: 1\nrate: 2\n", .err = {}};
    CHECK(!read(metric("speed: (\\S+)"), two));
    CHECK(!read(metric("rate: (\\S+)"), two));
    CHECK(*read(metric("rate: (\\S+)", {{"take", "first"}}), two)->metrics[0].value == 1);
    CHECK(*read(metric("rate: (\\S+)", {{"take", "last"}}), two)->metrics[0].value == 2);
    for (const char* word : {"fast", "1.2.3", "1,5", "0x10", "5ms"})
        CHECK(!read(metric("rate: (\\S+)"), {.out = std::string("rate: ") + word + "\n", .err = {}}));
    const auto long_line = "rate: 5" + std::string(5000, ' ');
    const auto cut = read(metric("rate: (\\d+)"), {.out = long_line, .err = {}});
    REQUIRE(!cut);
    CHECK(cut.error().why.find("longer") != std::string::npos);
}

TEST_CASE("long output is searched from the end that the first, the last or the only match is to be told from") {
    const std::string noise(6 << 20, '\n');
    const std::string out = "rate: 1\n" + noise + "rate: 2\n";
    CHECK(*read(metric("rate: (\\S+)", {{"take", "first"}}), {.out = out, .err = {}})->metrics[0].value == 1);
    CHECK(*read(metric("rate: (\\S+)", {{"take", "last"}}), {.out = out, .err = {}})->metrics[0].value == 2);
    CHECK(!read(metric("rate: (\\S+)"), {.out = out, .err = {}})); // both lines count
    const std::string early = "rate: 1\n" + noise;
    CHECK(*read(metric("rate: (\\S+)"), {.out = early, .err = {}})->metrics[0].value == 1);
    const auto late = read(metric("rate: (\\S+)", {{"take", "first"}}), {.out = noise + "rate: 2\n", .err = {}});
    REQUIRE(!late);
    CHECK(late.error().why.find("only its first") != std::string::npos);
}

TEST_CASE("no number is read out of a line that was torn where output was dropped") {
    const std::string out = "rate: 1\nrate: 23" + dropped_mark(99) + "45 rate: 6\nrate: 7\n";
    const auto of = [&](const char* take) {
        return read(metric("rate: (\\S+)", {{"take", take}}), {.out = out, .err = {}, .out_dropped_bytes = 99});
    };
    CHECK(*of("first")->metrics[0].value == 1);
    CHECK(*of("last")->metrics[0].value == 7);
    CHECK(!of("only"));
    const std::string torn = "rate: 23" + dropped_mark(99) + "45 rate: 6\nrate: 7\n";
    const ToolOutput once{.out = torn, .err = {}, .out_dropped_bytes = 99};
    const auto only = read(metric("rate: (\\S+)"), once);
    REQUIRE(only);
    CHECK(*only->metrics[0].value == 7);
    CHECK(only->status == ReadingStatus::suspect); // what was dropped may have held another
    CHECK(!read(metric("rate: (\\S+)", {{"take", "first"}}), once));
}

TEST_CASE("a command that ends long before its phase is suspect, unless its length is its own") {
    auto options = metric("rate: (\\S+)");
    ToolOutput output{.out = "rate: 5\n", .err = {}, .elapsed_seconds = 0.3, .asked_seconds = 5};
    CHECK(read(options, output)->status == ReadingStatus::suspect);
    CHECK(read(options, output)->reason.find("0.3 s of 5 s") != std::string::npos);
    output.elapsed_seconds = 4.9;
    CHECK(read(options, output)->status == ReadingStatus::ok);
    output.elapsed_seconds = 0.3;
    options["ends_by_itself"] = "true";
    CHECK(read(options, output)->status == ReadingStatus::ok);
}

TEST_CASE("a placeholder is a metric without a value, and suspect") {
    for (const char* word : {"nan", "-NaN", "inf", "N/A", "-"}) {
        const std::string out = std::string("rate: ") + word + "\n";
        const auto r = read(metric("rate: (\\S+)"), {.out = out, .err = {}});
        REQUIRE(r);
        CHECK(r->status == ReadingStatus::suspect);
        CHECK(!r->metrics[0].value);
    }
}

TEST_CASE("a JSON pointer finds numbers, and text that is one") {
    const ToolOutput json{.out = R"({"a": [1, {"b": "250"}], "n": null, "o": {}, "t": true})", .err = {}};
    CHECK(*read(pointed("/a/1/b"), json)->metrics[0].value == 0.25);
    CHECK(*read(pointed("/a/0"), json)->metrics[0].value == 0.001);
    CHECK(read(pointed("/n"), json)->status == ReadingStatus::suspect);
    for (const char* wrong : {"/x", "/a/7", "/a/x", "/a/-", "/o", "/t", "/a/0/0"}) CHECK(!read(pointed(wrong), json));
    CHECK(!read(pointed("/a"), {.out = "{\"a\": NaN}", .err = {}}));
    CHECK(!read(pointed("/a"), {.out = "", .err = {}}));
}

TEST_CASE("a command that fails gives no result even when it printed its numbers") {
    const auto r = read(metric("rate: (\\S+)"), {.out = "rate: 5\n", .err = "disk full\n", .exit_code = 3});
    REQUIRE(r);
    CHECK(r->status == ReadingStatus::no_result);
    CHECK(r->reason == "disk full (it exited with status 3)");
    CHECK(r->metrics.empty());
}

TEST_CASE("declared series are read from lines as they come") {
    auto options = metric("end (\\d+)");
    options["series"] = {
        {{"name", "ops"}, {"unit", "1/s"}, {"pattern", "^ops=(\\S+)"}, {"scale", 2}, {"from", "stderr"}}};
    const auto tool = make_tool("command", options);
    REQUIRE(tool);
    const auto live = (*tool)->parse_live_line("ops=21\r", true);
    REQUIRE(live);
    CHECK(live->value == 42);
    CHECK(live->unit == "1/s");
    CHECK(!(*tool)->parse_live_line("ops=21", false));
    CHECK(!(*tool)->parse_live_line("ops=nan", true));
    CHECK(!(*tool)->parse_live_line("xops=1", true));
}

TEST_CASE("a hostile pattern costs polynomial time and no deep stack") {
    const std::string out = std::string(2000, 'a') + "\n";
    CHECK(!read(metric("((?:a+)+b)"), {.out = out, .err = {}})); // no match, and back within the test's time
}

TEST_CASE("the phase and its length reach the command as environment, and nothing in its words is touched") {
    auto options = metric("x=(.*)");
    options["command"] = "echo x={phase} $PERFRIG_PHASE $PERFRIG_DURATION_SECONDS $LC_ALL";
    const auto tool = make_tool("command", options);
    const auto call = (*tool)->invocation(ToolPhase::warm_up, milliseconds(1500));
    REQUIRE(call);
    CHECK(call->at_most == milliseconds(61500));
    const auto run = testing::run_real(*call);
    CHECK(run.out == "x={phase} warm_up 1.5 C\n");
    options["at_most"] = "5s";
    CHECK((*make_tool("command", options))->invocation(ToolPhase::measure, seconds(60))->at_most == seconds(5));
}
