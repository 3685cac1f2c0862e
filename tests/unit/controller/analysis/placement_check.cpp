#include "controller/analysis/placement_check.hpp"
#include "tests/support/doctest.hpp"

#include <algorithm>

using namespace perfrig;
using namespace perfrig::analysis;

namespace {
RunData run(const std::string& granted, const std::string& observed) {
    RunData data;
    model::Phase measure;
    measure.name = "measure";
    measure.start_ns = 100;
    measure.end_ns = 200;
    data.phases = {measure};
    model::Process process;
    process.name = "nginx";
    process.granted_cpus = granted;
    process.observed_cpus = observed;
    process.started_ns = 50;
    data.processes = {process};
    return data;
}
const model::Finding* find(const Evaluation& e, const std::string& check) {
    const auto found = std::ranges::find(e.findings, check, &model::Finding::check_name);
    return found == e.findings.end() ? nullptr : &*found;
}
} // namespace

TEST_CASE("a process that could run outside its grant voids the run") {
    const auto out = check_placement(run("0-1", "0-3"));
    CHECK(out.void_run);
    REQUIRE(find(out, "placement_outside_grant"));
    CHECK(find(out, "placement_outside_grant")->severity == model::Severity::void_);
    CHECK(find(out, "placement_outside_grant")->message.find("2-3") != std::string::npos);
}

TEST_CASE("a process that narrowed itself is a finding that names both lists") {
    const auto out = check_placement(run("0-3", "0,2"));
    CHECK(!out.void_run);
    REQUIRE(find(out, "placement_narrower"));
    CHECK(find(out, "placement_narrower")->severity == model::Severity::info);
    CHECK(find(out, "placement_narrower")->message.find("0,2") != std::string::npos);
    CHECK(find(out, "placement_narrower")->message.find("0-3") != std::string::npos);
}

TEST_CASE("the grant as given is no finding, not read back a warning") {
    CHECK(check_placement(run("0-3", "0-3")).findings.empty());
    CHECK(check_placement(run("", "0-7")).findings.empty()); // it was not pinned
    REQUIRE(find(check_placement(run("0-3", "")), "placement_not_read"));
    auto warm_up = run("0-3", "");
    warm_up.processes[0].ended_ns = 90; // gone before measure: nothing to read
    CHECK(check_placement(warm_up).findings.empty());
}

TEST_CASE("what the agent found already is not said twice but still voids") {
    auto data = run("0-1", "0-3");
    model::Finding said;
    said.check_name = "placement";
    said.subject = "nginx";
    said.severity = model::Severity::void_;
    data.findings = {said};
    const auto out = check_placement(data);
    CHECK(out.findings.empty());
    CHECK(out.void_run);
}

TEST_CASE("roles that share CPUs are found, and any void finding of the agent voids the run") {
    auto data = run("0", "0");
    data.roles = {{"app", "0-1"}, {"load", "1-2"}, {"db", "3"}};
    REQUIRE(find(check_placement(data), "shared_cpus"));
    CHECK(check_placement(data).findings.size() == 1);
    CHECK(!evaluate(data).void_run);
    model::Finding reading;
    reading.check_name = "reading";
    reading.severity = model::Severity::void_;
    data.findings = {reading};
    CHECK(evaluate(data).void_run);
}
