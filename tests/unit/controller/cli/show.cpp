// What the command line says of runs and submissions, from the documents of the REST API.
#include "controller/cli/show.hpp"
#include "controller/cli/unfinished.hpp"
#include "tests/support/doctest.hpp"

#include <cstdlib>
#include <ctime>

using namespace perfrig;
using namespace perfrig::cli;

TEST_CASE("a run is named by its factors in the order of the definition, and by its attempt where it is another") {
    Json run = {{"levels", {{"clients", "4"}, {"arch", "x"}}}, {"replicate", 2}, {"attempt", 1}};
    CHECK(run_name(run, {{"factors", {"clients", "arch"}}}) == "clients=4 arch=x #2");
    run["attempt"] = 3;
    CHECK(run_name(run, {{"factors", nullptr}}) == "arch=x clients=4 #2 attempt 3"); // an older controller's
    CHECK(run_name({{"levels", Json::object()}}, Json::object()) == "#1");
}

TEST_CASE("a queued submission says how long it takes, and until when if it starts at once") {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    const std::int64_t now_ns = 1'790'000'000'000'000'000; // 2026-09-21 14:13:20
    Json s = {{"state", "queued"}, {"expected_seconds", 540.0}, {"waiting", nullptr}};
    CHECK(expectation_text(s, now_ns) == "about 9 min, until 14:22");
    s["expected_is_lower_bound"] = true;
    s["expected_seconds"] = 40.4;
    CHECK(expectation_text(s, now_ns) == "at least 40 s, until 14:14");
    s["expected_seconds"] = 36'000.0;
    CHECK(expectation_text(s, now_ns) == "at least 10 h, until 2026-09-22 00:13");
    s["waiting"] = {{"blocks_ahead", 0}, {"machines", {{{"machine", "xeon"}, {"why", "free"}}}}};
    CHECK(expectation_text(s, now_ns).find("until") != std::string::npos);
    s["waiting"] = {{"blocks_ahead", 2}, {"machines", {{{"machine", "xeon"}, {"why", "busy"}}}}};
    CHECK(expectation_text(s, now_ns) == "at least 10 h once it starts");
    s["expected_seconds"] = nullptr;
    CHECK(expectation_text(s, now_ns).empty());
}

TEST_CASE("down asks nobody where up never was") { CHECK(unfinished_text("/nowhere").empty()); }
