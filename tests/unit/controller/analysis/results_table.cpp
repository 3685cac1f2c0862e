#include "controller/analysis/results_table.hpp"
#include "tests/support/doctest.hpp"

#include <algorithm>

using namespace perfrig;
using namespace perfrig::analysis;

namespace {
model::Metric metric(const std::string& name, double value, model::Labels labels = {}) {
    model::Metric out;
    out.name = name;
    out.unit = "1/s";
    out.value = value;
    out.labels = std::move(labels);
    return out;
}
RunResult result(model::Id cell, int replicate, double rate, model::RunState state = model::RunState::completed) {
    RunResult out;
    out.run.id = cell * 100 + replicate;
    out.run.cell_id = cell;
    out.run.replicate = replicate;
    out.run.state = state;
    if (state == model::RunState::completed)
        out.metrics = {metric("requests_per_second", rate), metric("latency_seconds", 0.01, {{"quantile", "0.99"}}),
                       metric("bytes_read", 1)};
    return out;
}
std::vector<model::Cell> cells() {
    return {{1, 1, 1, "k1", {{"connections", "1"}}}, {2, 1, 2, "k2", {{"connections", "2"}}}};
}
} // namespace

TEST_CASE("one row a cell: the median over replicates and every value") {
    const auto table = summarise(cells(), {result(2, 1, 50), result(1, 3, 30), result(1, 1, 10), result(1, 2, 11)});
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0].cell.cell_key == "k1");
    CHECK(table.rows[0].n == 3);
    const Summary& rate = table.rows[0].values.at("requests_per_second");
    CHECK(rate.median == 11);
    REQUIRE(rate.values.size() == 3);
    CHECK(rate.values[2].value == 30);
    CHECK(rate.values[2].run == 103);
    CHECK(table.rows[1].values.at("requests_per_second").median == 50);
}

TEST_CASE("main columns come first and have titles, the others their key") {
    const auto table = summarise(cells(), {result(1, 1, 10)});
    REQUIRE(table.columns.size() == 3);
    CHECK(table.columns[0].title == "requests/s");
    CHECK(table.columns[0].main);
    CHECK(table.columns[1].key == "latency_seconds{quantile=0.99}");
    CHECK(table.columns[1].title == "latency p99");
    CHECK(table.columns[2].title == "bytes_read");
    CHECK(!table.columns[2].main);
}

TEST_CASE("void, failed, refused and open runs are counted, not averaged") {
    auto voided = result(1, 2, 1'000'000);
    voided.run.verdict = model::Verdict::void_;
    model::Finding why;
    why.severity = model::Severity::void_;
    why.message = "outside its grant";
    voided.findings = {why};
    auto refused = result(1, 3, 0, model::RunState::refused);
    refused.run.reason = "no such CPU";
    const auto table = summarise(cells(), {result(1, 1, 10), voided, refused, result(2, 1, 0, model::RunState::failed),
                                           result(2, 2, 0, model::RunState::measuring)});
    CHECK(table.rows[0].n == 1);
    CHECK(table.rows[0].voided == 1);
    CHECK(table.rows[0].refused == 1);
    CHECK(table.rows[0].values.at("requests_per_second").median == 10);
    CHECK(table.rows[0].replicates[1].reason == "outside its grant");
    CHECK(table.rows[0].replicates[2].reason == "no such CPU");
    CHECK(table.rows[1].n == 0);
    CHECK(table.rows[1].failed == 1);
    CHECK(table.rows[1].open == 1);
    CHECK(table.rows[1].values.empty());
}

TEST_CASE("of each replicate the last attempt counts") {
    auto first = result(1, 1, 0, model::RunState::interrupted), second = result(1, 1, 42);
    second.run.attempt = 2;
    second.run.id = 7;
    for (const auto& order : {std::vector{first, second}, std::vector{second, first}}) {
        const auto table = summarise(cells(), order);
        CHECK(table.rows[0].n == 1);
        CHECK(table.rows[0].failed == 0);
        CHECK(table.rows[0].replicates.front().attempt == 2);
        CHECK(table.rows[0].values.at("requests_per_second").median == 42);
    }
}

TEST_CASE("a placeholder is no value") {
    auto none = result(1, 1, 10);
    none.metrics[0].value.reset();
    CHECK(!summarise(cells(), {none}).rows[0].values.contains("requests_per_second"));
}

TEST_CASE("of a tool that reports nothing well known, all that it reports without labels is a main column") {
    auto one = result(1, 1, 10);
    const auto tool = [](const std::string& name, model::Labels labels) {
        auto out = metric(name, 1, std::move(labels));
        out.source = "tool";
        return out;
    };
    auto derived = metric("agent_cpu_ratio", 1);
    derived.source = "derived";
    one.metrics = {tool("yield_time", {}), tool("evenness", {}), tool("yields", {{"thread", "1"}}), derived};
    const auto alone = summarise(cells(), {one});
    REQUIRE(alone.columns.size() == 4);
    CHECK(alone.columns[0].title == "evenness");
    CHECK(alone.columns[0].main);
    CHECK(alone.columns[1].title == "yield_time");
    CHECK(alone.columns[1].main);
    CHECK(!alone.columns[2].main);
    CHECK(!alone.columns[3].main);

    one.metrics = {tool("requests_per_second", {{"tool", "wrk"}}), tool("bytes_read", {{"tool", "wrk"}}),
                   tool("evenness", {{"tool", "probe"}})};
    const auto beside = summarise(cells(), {one});
    REQUIRE(beside.columns.size() == 3);
    CHECK(beside.columns[0].title == "requests/s (wrk)");
    CHECK(beside.columns[1].title == "evenness (probe)");
    CHECK(beside.columns[1].main);
    CHECK(!beside.columns[2].main);
}

TEST_CASE("findings are grouped by kind, gravest first, each with its runs") {
    const auto found = [](const char* check, model::Severity severity, const std::string& message) {
        model::Finding out;
        out.check_name = check;
        out.severity = severity;
        out.subject = "app";
        out.message = message;
        return out;
    };
    auto first = result(1, 1, 10), second = result(1, 2, 10), old = result(2, 1, 10), last = result(2, 1, 10);
    last.run.attempt = 2;
    last.run.id = 999;
    first.findings = {found("cpu_other", model::Severity::warning, "12.5 % of it"),
                      found("cpu_other", model::Severity::warning, "12.5 % of it"),
                      found("cpu_other", model::Severity::warning, "none of it")};
    second.findings = {found("cpu_other", model::Severity::warning, "9 % of it"),
                       found("placement", model::Severity::void_, "elsewhere")};
    old.findings = {found("placement", model::Severity::void_, "elsewhere")}; // tried again: counts no more
    last.findings = {found("note", model::Severity::info, "by the way")};
    const auto table = summarise(cells(), {last, second, first, old});
    REQUIRE(table.findings.size() == 4);
    CHECK(table.findings[0].check == "placement");
    REQUIRE(table.findings[0].in.size() == 1);
    CHECK(table.findings[0].in[0].run == 102);
    CHECK(table.findings[1].check == "cpu_other");
    REQUIRE(table.findings[1].in.size() == 2); // figures differ, the kind does not; twice in a run counts once
    CHECK(table.findings[1].in[0].run == 101);
    CHECK(table.findings[1].in[1].message == "9 % of it");
    CHECK(table.findings[2].in[0].message == "none of it");
    CHECK(table.findings[3].severity == model::Severity::info);
    CHECK(table.rows[0].replicates[0].findings == 3);
}

TEST_CASE("groups of findings are bounded, and what is left out is counted") {
    auto one = result(1, 1, 10);
    for (int i = 0; i < 130; ++i) {
        model::Finding finding;
        finding.check_name = "check";
        finding.subject = "thing " + std::to_string(i);
        one.findings.push_back(finding);
    }
    const auto table = summarise(cells(), {one});
    CHECK(table.findings.size() == most_finding_groups);
    CHECK(table.groups_left_out == 30);
}

TEST_CASE("a mean latency is shown only of tools without quantiles, a tool's switches only where there is no service") {
    auto one = result(1, 1, 10);
    const auto switches = [](const char* process) {
        return metric("context_switches_per_request", 1, {{"process", process}, {"kind", "voluntary"}});
    };
    const auto mean = metric("latency_seconds", 1, {{"stat", "mean"}});
    const auto titles = [](const ResultsTable& table) {
        std::string out;
        for (const auto& column : table.columns)
            if (column.main) out += column.title + "; ";
        return out;
    };
    one.metrics = {metric("requests_per_second", 1), mean, switches("wrk")};
    CHECK(titles(summarise(cells(), {one}, {"wrk"})) == "requests/s; latency mean; wrk vol. switches/req; ");
    one.metrics.push_back(metric("latency_seconds", 1, {{"quantile", "0.5"}}));
    one.metrics.push_back(switches("nginx"));
    CHECK(titles(summarise(cells(), {one}, {"wrk"})) == "requests/s; latency p50; nginx vol. switches/req; ");
}

TEST_CASE("what others used of a role's CPUs is shown where it is much in some cell") {
    auto quiet = result(1, 1, 10), loud = result(2, 1, 10);
    const auto other = [](double value) {
        return metric("cpu_other_ratio", value, {{"role", "app"}, {"of", "capacity"}});
    };
    const auto shown = [](const ResultsTable& table) {
        return std::ranges::any_of(table.columns,
                                   [](const Column& c) { return c.main && c.title == "app used by others"; });
    };
    quiet.metrics.push_back(other(0.04));
    loud.metrics.push_back(other(0.04));
    CHECK(!shown(summarise(cells(), {quiet, loud})));
    loud.metrics.back() = other(0.3);
    CHECK(shown(summarise(cells(), {quiet, loud})));
}
