#include "controller/db/samples.hpp"
#include "controller/ingest/ingest.hpp"
#include "tests/integration/db/scratch.hpp"

#include <algorithm>

using namespace perfrig;
using namespace perfrig::test;

namespace {

// A run of a 10 s measure phase on CPU 0, which is 30 % user and 20 % system; 100 requests/s.
std::vector<protocol::SpoolRecord> run_records(model::Id run, const std::string& observed) {
    constexpr std::int64_t s = 1'000'000'000;
    std::vector<protocol::SpoolRecord> out;
    const auto add = [&](protocol::RunEventBody body) {
        out.push_back(event_record(out.size() + 1, run, std::move(body)));
    };
    add(protocol::RolesGranted{{{"app", "0"}}});
    add(state("measuring"));
    add(protocol::ProcessStarted{0, "app", "nginx", "start", 10, "0", "", Json::object(), s});
    add(protocol::PhaseStarted{0, "measure", 10 * s, {10 * s, 100 * s, 1}});
    std::uint32_t id = 0;
    for (const char* mode : {"user", "nice", "system", "irq", "softirq"})
        add(series(++id, "cpu_" + std::string(mode) + "_seconds", {{"cpu", "0"}}));
    for (int tick = 5; tick <= 25; ++tick) {
        protocol::SampleFrame frame{run, tick * s, {}};
        frame.samples = {{1, tick * 0.3}, {2, 0}, {3, tick * 0.2}, {4, 0}, {5, 0}};
        out.push_back(frame_record(out.size() + 1, frame));
    }
    add(protocol::ProcessObserved{0, observed, "0"});
    add(protocol::PhaseEnded{0, 20 * s});
    protocol::MetricRead rate;
    rate.name = "requests_per_second";
    rate.unit = "1/s";
    rate.value = 100;
    rate.window_start_ns = 10 * s;
    rate.window_end_ns = 20 * s;
    add(rate);
    add(state("completed"));
    return out;
}

std::optional<double> metric(db::Connection& c, model::Id run, const std::string& name, const model::Labels& labels) {
    for (const auto& one : good(db::runs::metrics(c, run)))
        if (one.name == name && one.labels == labels) return one.value;
    return std::nullopt;
}

} // namespace

TEST_CASE("a completed run is evaluated when it is finished, and again with the same outcome") {
    Scratch db;
    const Rig r = rig(db.c());
    good(ingest::store_batch(db.c(), r.machine.id, {1, run_records(r.run(), "0")}));
    for (int time = 0; time < 2; ++time) {
        good(ingest::finish_run(db.c(), r.run()));
        CHECK(metric(db.c(), r.run(), "cpu_busy_ratio", {{"role", "app"}, {"mode", "total"}}).value() ==
              doctest::Approx(0.5));
        CHECK(metric(db.c(), r.run(), "service_demand_seconds", {{"role", "app"}}).value() == doctest::Approx(0.005));
        CHECK(metric(db.c(), r.run(), "requests_per_second", {}) == 100);
    }
    const auto findings = good(db::runs::findings(db.c(), r.run()));
    const auto says_once = [&](const std::string& subject) {
        return std::ranges::count(findings, subject, &model::Finding::subject) == 1;
    };
    CHECK(says_once("agent"));
    CHECK(good(db::runs::get(db.c(), r.run())).verdict == model::Verdict::unreviewed);
    CHECK(good(db::runs::metrics_of(db.c(), {r.run()})).size() == good(db::runs::metrics(db.c(), r.run())).size());
}

TEST_CASE("a process outside its grant voids the run and both lists are named") {
    Scratch db;
    const Rig r = rig(db.c());
    good(ingest::store_batch(db.c(), r.machine.id, {1, run_records(r.run(), "0-1")}));
    good(ingest::finish_run(db.c(), r.run()));
    CHECK(good(db::runs::get(db.c(), r.run())).verdict == model::Verdict::void_);
    CHECK(good(db::submissions::counts(db.c(), r.submission.id)).by_verdict[model::Verdict::void_] == 1);
    const auto grave = good(db::runs::grave_findings_of(db.c(), {r.run()}));
    CHECK(std::ranges::count(grave, "placement_outside_grant", &model::Finding::check_name) == 1);
    CHECK(std::ranges::count(grave, model::Severity::info, &model::Finding::severity) == 0);
    const auto findings = good(db::runs::findings(db.c(), r.run()));
    const auto found = std::ranges::find(findings, "placement_outside_grant", &model::Finding::check_name);
    REQUIRE(found != findings.end());
    CHECK(found->severity == model::Severity::void_);
    CHECK(found->message.find("0-1") != std::string::npos);
    CHECK(found->evidence["granted"] == "0");
}

TEST_CASE("a run that failed is sealed but not evaluated") {
    Scratch db;
    const Rig r = rig(db.c());
    auto records = run_records(r.run(), "0-1");
    records.back() = event_record(records.size(), r.run(), state("failed", "it broke"));
    good(ingest::store_batch(db.c(), r.machine.id, {1, records}));
    good(ingest::finish_run(db.c(), r.run()));
    const auto run = good(db::runs::get(db.c(), r.run()));
    CHECK(run.sealed_utc_ns.has_value());
    CHECK(run.verdict == model::Verdict::unreviewed);
    CHECK(good(db::runs::metrics(db.c(), r.run())).size() == 1);
}
