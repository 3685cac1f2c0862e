#include "agent/tools/tool.hpp"
#include "common/base/json.hpp"
#include "tests/support/doctest.hpp"

#include <algorithm>

using namespace perfrig;

namespace {
const OptionFault* fault_at(const std::vector<OptionFault>& faults, std::string_view path) {
    const auto found = std::ranges::find(faults, path, &OptionFault::path);
    return found == faults.end() ? nullptr : &*found;
}
const Json wrk{{"url", "http://h/"}, {"connections", 4}, {"threads", 2}};
Json changed(Json options, const char* name, Json value) {
    options[name] = std::move(value);
    return options;
}
} // namespace

TEST_CASE("every tool of the table can be made, and a misspelt one is suggested") {
    const std::map<std::string, Json> least{
        {"wrk", {{"url", "http://h/"}, {"connections", 1}}},
        {"pgbench", Json::object()},
        {"perf-sched-pipe", Json::object()},
        {"command", {{"command", {"true"}}, {"metrics", {{{"name", "x"}, {"unit", "s"}, {"pattern", "(.)"}}}}}}};
    for (const auto& tool : tool_descriptions()) {
        REQUIRE(least.contains(std::string(tool.name)));
        const auto made = make_tool(tool.name, least.at(std::string(tool.name)));
        REQUIRE(made);
        CHECK((*made)->name() == tool.name);
    }
    const auto faults = validate_tool_options("pgbensh", Json::object());
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].suggestion.find("'pgbench'") != std::string::npos);
}

TEST_CASE("all faults come at once, each with its place") {
    const auto faults = validate_tool_options(
        "wrk", {{"urls", "x"}, {"connections", 0}, {"threads", 1.5}, {"timeout", "5"}, {"headers", {"bad"}}});
    REQUIRE(fault_at(faults, "url"));
    REQUIRE(fault_at(faults, "urls"));
    CHECK(fault_at(faults, "urls")->suggestion.find("'url'") != std::string::npos);
    CHECK(fault_at(faults, "connections"));
    CHECK(fault_at(faults, "threads"));
    CHECK(fault_at(faults, "timeout"));
    CHECK(fault_at(faults, "headers/0"));
    const auto made = make_tool("wrk", {{"connections", 0}});
    REQUIRE(!made);
    CHECK(made.error().kind == ErrorKind::bad_input);
    CHECK(made.error().why.find("connections") != std::string::npos);
    CHECK(made.error().why.find("url") != std::string::npos);
}

TEST_CASE("threads that don't divide wrk's connections are refused with what wrk would do") {
    CHECK(validate_tool_options("wrk", wrk).empty());
    const auto odd = validate_tool_options("wrk", changed(wrk, "connections", 3));
    REQUIRE(fault_at(odd, "threads"));
    CHECK(fault_at(odd, "threads")->message.find("open 2 connections and print 3") != std::string::npos);
    const auto few = validate_tool_options("wrk", changed(wrk, "connections", 1));
    REQUIRE(fault_at(few, "threads"));
    CHECK(fault_at(few, "threads")->message.find("fewer") != std::string::npos);
}

TEST_CASE("options keep the text of a level, and wait for what the agent fills in") {
    CHECK(validate_tool_options("wrk", changed(wrk, "connections", "50")).empty());
    CHECK(!validate_tool_options("wrk", changed(wrk, "connections", "50 ")).empty());
    CHECK(!validate_tool_options("wrk", changed(wrk, "connections", "51")).empty());
    CHECK(validate_tool_options("pgbench", {{"port", "${port.db}"}}).empty());
    CHECK(!make_tool("pgbench", {{"port", "${port.db}"}}));
    CHECK(make_tool("pgbench", {{"port", "5433"}}));
    CHECK(validate_tool_options("wrk", changed(wrk, "url", "http://127.0.0.1:${port.web}/")).empty());
}

TEST_CASE("options that exclude or demand each other say so") {
    CHECK(fault_at(validate_tool_options("pgbench", {{"uri", "x"}, {"host", "y"}}), "host"));
    CHECK(fault_at(validate_tool_options("pgbench", {{"select_only", true}, {"scripts", {"SELECT 1"}}}), "scripts"));
    CHECK(fault_at(validate_tool_options("pgbench", {{"threads", 3}, {"clients", 2}}), "threads"));
    CHECK(fault_at(validate_tool_options("pgbench", {{"protocol", "prepare"}}), "protocol")
              ->suggestion.find("'prepared'") != std::string::npos);
    CHECK(fault_at(validate_tool_options("wrk", changed(wrk, "timeout", "1500ms")), "timeout"));
    CHECK(fault_at(validate_tool_options("wrk", changed(changed(wrk, "script", "x"), "script_file", "y")),
                   "script_file"));
    CHECK(fault_at(validate_tool_options("wrk", changed(wrk, "url", "ftp://h/")), "url"));
    CHECK(fault_at(validate_tool_options("wrk", changed(wrk, "headers", {"A: b\r\nC: d"})), "headers/0"));
}

TEST_CASE("a command's picks need a name, a unit and one way to find the number") {
    const auto faults_of = [](Json pick) {
        return validate_tool_options("command", {{"command", "x"}, {"metrics", {std::move(pick)}}});
    };
    CHECK(faults_of({{"name", "x"}, {"unit", "s"}, {"pattern", "(.)"}}).empty());
    CHECK(fault_at(faults_of({{"name", "x"}, {"pattern", "(.)"}}), "metrics/0/unit"));
    CHECK(fault_at(faults_of({{"name", "X y"}, {"unit", "s"}, {"pattern", "(.)"}}), "metrics/0/name"));
    CHECK(fault_at(faults_of({{"name", "x"}, {"unit", "s"}}), "metrics/0"));
    CHECK(fault_at(faults_of({{"name", "x"}, {"unit", "s"}, {"pattern", "(.)"}, {"pointer", "/a"}}), "metrics/0"));
    CHECK(fault_at(faults_of({{"name", "x"}, {"unit", "s"}, {"pointer", "a"}}), "metrics/0/pointer"));
    for (const char* pattern : {"x", "(.)(.)", "(", "(.){500}{500}", "(.)\\1", "[z-a](.)"})
        CHECK(fault_at(faults_of({{"name", "x"}, {"unit", "s"}, {"pattern", pattern}}), "metrics/0/pattern"));
    CHECK(fault_at(validate_tool_options("command", {{"command", Json::array()}, {"metrics", Json::array()}}),
                   "command"));
    CHECK(fault_at(validate_tool_options("command", {{"command", {"a", 5}}, {"metrics", Json::array()}}), "command/1"));
}

TEST_CASE("a command's metric takes no name of perfrig's own, no unit beside its name's, and no other metric's place") {
    const auto faults_of = [](const char* list, Json picks) {
        Json options{{"command", "x"}, {"metrics", Json::array()}};
        for (Json& pick : picks) pick["pattern"] = "(.)";
        options[list] = std::move(picks);
        return validate_tool_options("command", options);
    };
    const auto one = [](const char* name, const char* unit, Json labels = Json::object()) {
        return Json{{"name", name}, {"unit", unit}, {"labels", std::move(labels)}};
    };
    for (const char* list : {"metrics", "series"}) {
        CHECK(fault_at(faults_of(list, {one("cpu_busy_ratio", "ratio")}), std::string(list) + "/0/name"));
        CHECK(fault_at(faults_of(list, {one("thread_voluntary_switches", "count")}), std::string(list) + "/0/name"));
        CHECK(fault_at(faults_of(list, {one("a", "s"), one("a", "B")}), std::string(list) + "/1/name"));
        CHECK(!fault_at(faults_of(list, {one("a", "s", {{"op", "get"}}), one("a", "s", {{"op", "put"}})}),
                        std::string(list) + "/1/name"));
    }
    CHECK(fault_at(faults_of("metrics", {one("requests_per_second", "1/min")}), "metrics/0/unit"));
    CHECK(fault_at(faults_of("metrics", {one("latency_seconds", "ms")}), "metrics/0/unit"));
    CHECK(faults_of("metrics", {one("requests_per_second", "1/s"), one("latency_seconds", "s")}).empty());
}

TEST_CASE("durations a tool can't keep are refused with the next that it can") {
    const auto faults = check_tool_duration("wrk", "measure", std::chrono::milliseconds(1500));
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].path == "measure");
    CHECK(faults[0].suggestion == "2s");
    CHECK(check_tool_duration("wrk", "measure", std::chrono::seconds(2)).empty());
    CHECK(!check_tool_duration("pgbench", "measure", std::chrono::seconds(0)).empty());
    CHECK(check_tool_duration("perf-sched-pipe", "measure", std::chrono::seconds(0)).empty());
    CHECK(check_tool_duration("command", "warm_up", std::chrono::milliseconds(300)).empty());
}

TEST_CASE("options of any JSON type are judged, not trusted") {
    for (const Json& odd :
         {Json(), Json(3), Json("x"), Json::array({1}),
          Json::object({{"url", Json::object()}, {"connections", nullptr}, {"threads", Json::array()}})})
        for (const auto& tool : tool_descriptions()) (void)validate_tool_options(tool.name, odd);
    CHECK(!make_tool("wrk", Json(3)));
    CHECK(!make_tool("command", {{"command", {{"a", "b"}}}, {"metrics", {3}}}));
}
