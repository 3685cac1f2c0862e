// Holds the parsers to a folder of real outputs with what a careful reader extracts from each: NAME.txt beside
// NAME.expected.json. PERFRIG_CORPUS names the folder; without it there is nothing to do here.
#include "agent/tools/perf_bench_report.hpp"
#include "agent/tools/pgbench.hpp"
#include "agent/tools/text.hpp"
#include "agent/tools/wrk.hpp"
#include "common/base/json.hpp"
#include "tests/support/doctest.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

using namespace perfrig;
namespace fs = std::filesystem;

namespace {

std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

// The last line "rc N" of a sample is the exit status.
int take_exit(std::string& text) {
    while (text.ends_with('\n')) text.pop_back();
    const auto line = text.rfind('\n');
    if (text.compare(line == std::string::npos ? 0 : line + 1, 3, "rc ") != 0) return 0;
    const int code = std::atoi(text.c_str() + line + 4);
    text.resize(line + 1);
    return code;
}

using Value = std::optional<double>;

// `tolerance` relative: bytes were rounded to the printed KB or MB, minutes to two decimals.
void same(const std::string& what, const Json& wanted, const Value& got, double tolerance = 1e-6) {
    CAPTURE(what);
    if (wanted.is_null()) {
        CHECK(!got.has_value());
        return;
    }
    REQUIRE(got.has_value());
    CHECK(*got == doctest::Approx(wanted.get<double>()).epsilon(tolerance));
}

Value metric(const Reading& r, const std::string& name, const Labels& labels = {}) {
    const auto* found = r.find(name, labels);
    CAPTURE(name);
    REQUIRE(found != nullptr);
    return found->value;
}
Value metric_if(const Reading& r, const std::string& name, const Labels& labels = {}) {
    const auto* found = r.find(name, labels);
    return found ? found->value : Value{};
}
Value fact(const Reading& r, const char* name) {
    const auto found = r.facts.find(name);
    return found == r.facts.end() ? Value{} : text::number(found->second);
}

void check_verdict(const std::string& verdict, const Reading& r) {
    CAPTURE(r.reason);
    std::string word = verdict.substr(0, verdict.find_first_of(" :,"));
    std::string mine(to_string(r.status));
    CHECK(mine.substr(0, mine.find('_')) == word);
}

using Checks = std::map<std::string, std::function<void(const Json&, const Reading&)>>;
using R = const Reading&;
using J = const Json&;

void check_wrk_row(J j, R r, const char* name) {
    for (const auto& [key, stat] : {std::pair{"avg", "mean"}, {"stdev", "stdev"}, {"max", "max"}})
        same(key, j.at(key), metric(r, name, {{"stat", stat}}));
    const auto within = metric(r, "thread_requests_within_stdev_ratio");
    same("within", j.at("within_stdev_pct"), within ? Value(*within * 100) : within);
}

const Checks wrk_checks{
    {"threads", [](J j, R r) { same("threads", j, fact(r, "threads")); }},
    {"connections", [](J j, R r) { same("connections", j, fact(r, "connections")); }},
    {"duration_s", [](J j, R r) { same("duration", j, fact(r, "asked_seconds")); }},
    {"latency_avg_s",
     [](J j, R r) {
         same("mean", j, metric(r, "latency_seconds", {{"stat", "mean"}}));
     }},
    {"latency_stdev_s",
     [](J j, R r) {
         same("stdev", j, metric(r, "latency_seconds", {{"stat", "stdev"}}));
     }},
    {"latency_max_s",
     [](J j, R r) {
         same("max", j, metric(r, "latency_seconds", {{"stat", "max"}}));
     }},
    {"latency_within_stdev_pct",
     [](J j, R r) {
         const auto v = metric(r, "latency_within_stdev_ratio");
         same("within", j, v ? Value(*v * 100) : v);
     }},
    {"reqsec_per_thread", [](J j, R r) { check_wrk_row(j, r, "thread_requests_per_second"); }},
    {"requests", [](J j, R r) { same("requests", j, metric(r, "requests")); }},
    {"elapsed_s", [](J j, R r) { same("elapsed", j, metric(r, "elapsed_seconds")); }},
    {"bytes_read", [](J j, R r) { same("bytes", j, metric(r, "bytes_read"), 0.005); }},
    {"requests_per_s", [](J j, R r) { same("rate", j, metric(r, "requests_per_second")); }},
    {"bytes_per_s", [](J j, R r) { same("bytes rate", j, metric(r, "bytes_per_second"), 0.005); }},
    {"socket_errors",
     [](J j, R r) {
         for (const auto& [kind, n] : j.items()) same(kind, n, metric(r, "errors", {{"kind", kind}}));
     }},
    {"non_2xx_3xx",
     [](J j, R r) {
         same("status", j, metric(r, "errors", {{"kind", "status"}}));
     }},
    {"percentiles_s",
     [](J j, R r) {
         for (const auto& [p, seconds] : j.items()) {
             auto label = std::to_string(std::stod(p) / 100);
             while (label.ends_with('0')) label.pop_back();
             same(p, seconds, metric(r, "latency_seconds", {{"quantile", label}}));
         }
     }},
    {"lua_csv",
     [](J j, R r) {
         for (const auto& [key, v] : j.items())
             same(key, v,
                  metric(r, "script_value",
                         {{"variable", key.ends_with("_s")
                                           ? key.substr(0, key.size() - 2)
                                           : std::string(key == "bytes_transferred" ? "bytes transferred" : key)}}));
     }},
};

void check_statement(J j, R r, const std::string& number) {
    for (const auto& m : r.metrics) {
        const auto found = m.labels.find("statement");
        if (found == m.labels.end() || found->second != number) continue;
        if (m.name == "statement_latency_seconds") same("latency", j.at("latency_s"), m.value);
        if (m.name == "statement_failures") same("failures", j.at("failures"), m.value);
        if (m.name == "statement_retries") same("retries", j.at("retries"), m.value);
    }
}

const auto by_metric = [](const char* name, Labels labels = {}) {
    return [=](J j, R r) { same(name, j, metric_if(r, name, labels)); };
};
const auto by_fact = [](const char* name) {
    return [=](J j, R r) {
        const auto found = r.facts.find(name);
        if (j.is_number())
            same(name, j, fact(r, name));
        else
            CHECK((j.is_null() ? std::string() : j.get<std::string>()) ==
                  (found == r.facts.end() ? "" : found->second));
    };
};

const Checks pgbench_checks{
    {"pgbench_version", by_fact("version")},
    {"type", by_fact("transaction_type")},
    {"scale", by_fact("scale")},
    {"query_mode", by_fact("query_mode")},
    {"clients", by_fact("clients")},
    {"threads", by_fact("threads")},
    {"max_tries", by_fact("max_tries")},
    {"tps_kind", by_fact("rate_kind")},
    {"latency_kind", by_fact("latency_kind")},
    {"transactions", by_metric("transactions")},
    {"planned", by_metric("planned_transactions")},
    {"tps", by_metric("transactions_per_second")},
    {"tps_including_connections", by_metric("transactions_per_second_including_connections")},
    {"latency_avg_s", by_metric("latency_seconds", {{"stat", "mean"}})},
    {"latency_stdev_s", by_metric("latency_seconds", {{"stat", "stdev"}})},
    {"initial_connection_time_s", by_metric("initial_connection_time_seconds")},
    {"average_connection_time_s", by_metric("connection_time_seconds", {{"stat", "mean"}})},
    {"duration_s", by_metric("duration_seconds")},
    {"failed", by_metric("failed_transactions")},
    {"failed_pct",
     [](J j, R r) {
         const auto v = metric_if(r, "failed_transactions_ratio");
         same("failed", j, v ? Value(*v * 100) : v);
     }},
    {"serialization_failures", by_metric("serialization_failures")},
    {"deadlock_failures", by_metric("deadlock_failures")},
    {"retried", by_metric("retried_transactions")},
    {"retries", by_metric("retries")},
    {"skipped", by_metric("skipped_transactions")},
    {"above_limit",
     [](J j, R r) {
         same("limit", j.at("limit_s"), metric(r, "latency_limit_seconds"));
         same("count", j.at("count"), metric(r, "transactions_above_limit"));
     }},
    {"schedule_lag",
     [](J j, R r) {
         same("avg", j.at("avg_s"), metric(r, "schedule_lag_seconds", {{"stat", "mean"}}));
         same("max", j.at("max_s"), metric(r, "schedule_lag_seconds", {{"stat", "max"}}));
     }},
    {"statements_n",
     [](J j, R r) {
         std::size_t n = 0;
         for (const auto& m : r.metrics) n += m.name == "statement_latency_seconds";
         CHECK(n == j.get<std::size_t>());
     }},
    {"aborted", [](J, R r) { CHECK(r.status == ReadingStatus::invalid); }},
    {"errors", [](J j, R r) { CHECK(r.facts.at("error") == j[0].get<std::string>()); }},
    {"progress", [](J, R) {}}, // held below, line by line
};

void hold(const Json& expected, const Checks& checks, const Reading& r) {
    for (const auto& [key, wanted] : expected.items()) {
        CAPTURE(key);
        if (key == "verdict")
            check_verdict(wanted.get<std::string>(), r);
        else if (key == "exit")
            continue;
        else if (key == "error")
            CHECK(r.reason.find(wanted.get<std::string>()) != std::string::npos);
        else if (const auto check = checks.find(key); check != checks.end())
            check->second(wanted, r);
        else if (key.starts_with("statement_"))
            check_statement(wanted, r, key.substr(10));
        else
            FAIL_CHECK("no check for this key");
    }
}

void hold_progress(const Json& wanted, const std::string& text) {
    std::vector<PgbenchProgress> got;
    for (const auto line : text::lines(text))
        if (const auto p = parse_pgbench_progress(line)) got.push_back(*p);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        same("t", wanted[i].at("t_s"), got[i].at_seconds);
        same("tps", wanted[i].at("tps"), got[i].transactions_per_second);
        same("lat", wanted[i].at("lat_avg_s"), got[i].latency_mean_seconds);
        same("stdev", wanted[i].at("lat_stdev_s"), got[i].latency_stdev_seconds);
    }
}

void hold_perf_bench(const Json& expected, const PerfBenchReport& r) {
    for (const auto& [key, wanted] : expected.items()) {
        CAPTURE(key);
        const auto n = [](const auto& v) { return v ? Value(static_cast<double>(*v)) : Value{}; };
        if (key == "bench")
            CHECK(r.bench == wanted.get<std::string>());
        else if (key == "kind")
            CHECK(r.kind == wanted.get<std::string>());
        else if (key == "groups")
            same(key, wanted, n(r.groups));
        else if (key == "processes")
            same(key, wanted, n(r.tasks));
        else if (key == "threads")
            same(key, wanted, r.threads ? n(r.threads) : n(r.tasks));
        else if (key == "total_time_s" || key == "total_s")
            same(key, wanted, r.total_seconds);
        else if (key == "avg_ops_per_s" || key == "ops_per_s")
            same(key, wanted, r.operations_per_second);
        else if (key == "stdev_pct")
            same(key, wanted, r.stdev_ratio ? Value(*r.stdev_ratio * 100) : Value{});
        else if (key == "operations" || key == "loops" || key == "ops")
            same(key, wanted, n(r.operations));
        else if (key == "counters") {
            for (const auto& [name, c] : wanted.items()) {
                REQUIRE(r.counters.contains(name));
                same(name, c.at("value"), r.counters.at(name).value);
                if (c.contains("running_pct"))
                    same(name, c.at("running_pct"), *r.counters.at(name).running_ratio * 100);
            }
        } else if (key != "verdict")
            MESSAGE("not compared: ", key, " = ", wanted.dump());
    }
}

} // namespace

TEST_CASE("every value and verdict of the collection of real outputs is read") {
    const char* corpus = std::getenv("PERFRIG_CORPUS");
    if (!corpus) {
        std::puts(
            "SKIPPED every value and verdict of the collection of real outputs is read: PERFRIG_CORPUS is not set");
        return;
    }
    const fs::path folder = fs::path(corpus) / "tools";
    int seen = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string file = entry.path().filename().string();
        if (!file.ends_with(".expected.json")) continue;
        const auto document = parse_json(slurp(entry.path()), file);
        REQUIRE(document);
        const std::string tool = document->at("tool").get<std::string>();
        const Json& expected = document->at("expected");
        std::string text = slurp(folder / (file.substr(0, file.size() - 14) + ".txt"));
        const int exit_code = take_exit(text);
        CAPTURE(file);
        if (tool == "wrk" || tool == "pgbench") {
            const ToolOutput output{.out = text, .err = {}, .exit_code = exit_code};
            const auto reading = tool == "wrk"
                                     ? read_wrk(output, {.script_may_print = true, .distribution_required = false})
                                     : read_pgbench(output, std::nullopt);
            REQUIRE(reading);
            hold(expected, tool == "wrk" ? wrk_checks : pgbench_checks, *reading);
            if (expected.contains("progress")) hold_progress(expected.at("progress"), text);
            ++seen;
        } else if (tool == "perfbench") {
            const auto report = parse_perf_bench_report(text);
            REQUIRE(report);
            hold_perf_bench(expected, *report);
            ++seen;
        }
    }
    MESSAGE(seen, " outputs compared");
    CHECK(seen > 0);
}
