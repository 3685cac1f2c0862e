#include "controller/ingest/ingest.hpp"
#include "controller/db/artifacts.hpp"
#include "controller/db/events.hpp"
#include "controller/db/samples.hpp"
#include "tests/integration/db/scratch.hpp"

#include <algorithm>
#include <random>
#include <thread>

using namespace perfrig;
using namespace perfrig::test;
using model::RunState;

namespace {
protocol::SampleFrame frame(model::Id run, std::int64_t time_ns, double value, std::uint32_t series_id = 1) {
    return {run, time_ns, {{series_id, value}}};
}
std::vector<double> rejected_seqs(db::Connection& c) {
    std::vector<double> out;
    const auto rows =
        good(c.exec("select (detail->>'seq')::int from event where what = 'record_rejected' order by id"));
    for (int i = 0; i < rows.size(); ++i) out.push_back(double(rows.integer(i, 0)));
    return out;
}
} // namespace

TEST_CASE("a batch is stored once, however often and in whatever pieces it comes") {
    Scratch db;
    const Rig r = rig(db.c());
    std::vector<protocol::SpoolRecord> records{event_record(1, r.run(), state("measuring")),
                                               event_record(2, r.run(), series(1))};
    for (std::uint64_t seq = 3; seq <= 200; ++seq)
        records.push_back(frame_record(seq, frame(r.run(), std::int64_t(seq) * 1000, double(seq))));
    std::mt19937 random(7);
    std::uint64_t stored = 0, last = 0;
    while (last < 200) { // pieces that begin anywhere up to the next record
        const std::size_t from = random() % (last + 1);
        const std::size_t n = 1 + random() % 40;
        protocol::RecordBatch batch{1, {}};
        for (std::size_t i = from; i < std::min(from + n, records.size()); ++i) batch.records.push_back(records[i]);
        const auto out = good(ingest::store_batch(db.c(), r.machine.id, batch));
        CHECK(out.stored + out.skipped == batch.records.size());
        CHECK(out.cursor.last_seq >= last);
        stored += out.stored;
        last = out.cursor.last_seq;
    }
    CHECK(stored == 200);
    CHECK(count(db.c(), "select count(*) from live_frame") == 198);
    CHECK(good(db::samples::cursors(db.c(), r.machine.id)).front().last_seq == 200);
}

TEST_CASE("a gap is refused and stores nothing") {
    Scratch db;
    const Rig r = rig(db.c());
    const auto one = [&](std::uint64_t seq) { return frame_record(seq, frame(r.run(), 1, 1)); };
    good(ingest::store_batch(db.c(), r.machine.id, {1, {one(1)}}));
    const auto gap = ingest::store_batch(db.c(), r.machine.id, {1, {one(3), one(4)}});
    REQUIRE(!gap);
    CHECK(gap.error().kind == ErrorKind::conflict);
    CHECK(gap.error().why.starts_with("gap"));
    CHECK(ingest::store_batch(db.c(), r.machine.id, {1, {one(2), one(4)}}).error().kind == ErrorKind::bad_input);
    CHECK(count(db.c(), "select count(*) from live_frame") == 1);
    CHECK(good(ingest::store_batch(db.c(), r.machine.id, {2, {one(1)}})).stored == 1); // another epoch counts by itself
}

TEST_CASE("two sessions that send the same records store them once") {
    Scratch db;
    const Rig r = rig(db.c());
    protocol::RecordBatch batch{1, {}};
    for (std::uint64_t seq = 1; seq <= 50; ++seq)
        batch.records.push_back(frame_record(seq, frame(r.run(), std::int64_t(seq), 1)));
    std::atomic<std::uint64_t> stored = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            const auto connection = db.connect();
            if (const auto out = ingest::store_batch(*connection, r.machine.id, batch)) stored += out->stored;
        });
    for (auto& thread : threads) thread.join();
    CHECK(stored == 50);
    CHECK(count(db.c(), "select count(*) from live_frame") == 50);
}

TEST_CASE("a server process that dies within the transaction leaves nothing, and the same batch is stored afterwards") {
    Scratch db;
    const Rig r = rig(db.c());
    const protocol::RecordBatch batch{1,
                                      {frame_record(1, frame(r.run(), 1, 1)), frame_record(2, frame(r.run(), 2, 2))}};
    {
        const auto victim = db.connect();
        auto transaction = good(db::Transaction::begin(*victim));
        good(ingest::store_batch(*victim, r.machine.id, batch));
        good(db.c().exec("select pg_terminate_backend($1)", {victim->process_id()}));
        const auto lost = transaction.commit();
        REQUIRE(!lost);
        CHECK(lost.error().kind == ErrorKind::unavailable);
        CHECK(victim->broken());
    }
    CHECK(count(db.c(), "select count(*) from live_frame") == 0);
    CHECK(good(ingest::store_batch(db.c(), r.machine.id, batch)).stored == 2);
}

TEST_CASE("records that can't be applied become events and don't hold up the stream") {
    Scratch db;
    const Rig r = rig(db.c(), 1, "ryzen"), other = rig(db.c(), 1, "xeon");
    auto garbage = frame_record(2, frame(r.run(), 1, 1));
    garbage.payload = "garbage";
    auto not_json = event_record(3, r.run(), state("measuring"));
    not_json.payload = "{";
    const protocol::RecordBatch batch{
        1,
        {event_record(1, r.run(), state("measuring")), garbage, not_json, frame_record(4, frame(other.run(), 1, 1)),
         event_record(5, other.run(), state("failed", "by a stranger")), event_record(6, 999'999, state("measuring")),
         event_record(7, r.run(), protocol::PhaseEnded{9, 1}), event_record(8, r.run(), state("planned")),
         event_record(9, r.run(), protocol::PhaseStarted{0, "lunch", 1, {}}),
         event_record(10, r.run(), protocol::Found{"c", "info", "s", "fine", Json::object()}),
         frame_record(11, frame(r.run(), 5, 1))}};
    const auto out = good(ingest::store_batch(db.c(), r.machine.id, batch));
    CHECK(out.cursor.last_seq == 11);
    CHECK(out.rejected == 8);
    auto seqs = rejected_seqs(db.c());
    std::ranges::sort(seqs);
    CHECK(seqs == std::vector<double>{2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(good(db::runs::get(db.c(), other.run())).state == RunState::assigned);
    CHECK(good(db::runs::get(db.c(), r.run())).state == RunState::measuring);
    CHECK(good(db::runs::findings(db.c(), r.run())).size() == 1);
    CHECK(count(db.c(), "select count(*) from live_frame") == 1);
}

TEST_CASE("one bad metric or series among good ones is rejected alone") {
    Scratch db;
    const Rig r = rig(db.c());
    auto bad_kind = series(2);
    bad_kind.kind = "guess";
    protocol::MetricRead metric;
    metric.name = "requests_per_second";
    metric.unit = "1/s";
    metric.value = 3.5;
    const auto out =
        good(ingest::store_batch(db.c(), r.machine.id,
                                 {1,
                                  {event_record(1, r.run(), series(1)), event_record(2, r.run(), bad_kind),
                                   event_record(3, r.run(), series(3)), event_record(4, r.run(), metric)}}));
    CHECK(out.rejected == 1);
    CHECK(good(db::runs::series(db.c(), r.run())).size() == 2);
    CHECK(good(db::runs::metrics(db.c(), r.run())).front().value == 3.5);
}

TEST_CASE("a run's events become its story") {
    Scratch db;
    const Rig r = rig(db.c());
    protocol::PhaseStarted phase{0, "measure", 1'000, {1'000, 5'000, 10}};
    protocol::ProcessStarted process{0, "app", "nginx", "start", 42, "0-1", "/c", Json::object(), 900};
    const protocol::RecordBatch batch{
        1,
        {event_record(1, r.run(), protocol::RolesGranted{{{"app", "0-1"}}}),
         event_record(2, r.run(),
                      protocol::EnvironmentTaken{"before", "boot", "fp", {{"kernel", "6"}}, Json::object()}),
         event_record(3, r.run(), state("preparing")), event_record(4, r.run(), process),
         event_record(5, r.run(), phase), event_record(6, r.run(), protocol::ProcessObserved{0, "0-1", "0"}),
         event_record(7, r.run(), protocol::PhaseEnded{0, 2'000}),
         event_record(8, r.run(), protocol::ProcessEnded{0, 2'100, "0"}),
         event_record(9, r.run(), protocol::ArtifactOffered{"out.log", std::string(64, 'a'), 10}),
         event_record(10, r.run(), state("completed"))}};
    const auto out = good(ingest::store_batch(db.c(), r.machine.id, batch));
    CHECK(out.rejected == 0);
    CHECK(out.to_finish == std::vector<model::Id>{r.run()});
    CHECK(good(db::runs::unsealed(db.c(), 10)) == std::vector<model::Id>{r.run()});
    const auto run = good(db::runs::get(db.c(), r.run()));
    CHECK(run.state == RunState::completed);
    CHECK(run.started_utc_ns.has_value());
    CHECK(run.ended_utc_ns.has_value());
    CHECK(!run.deadline_utc_ns.has_value());
    CHECK(good(db::runs::machines(db.c(), r.run())).front().roles ==
          std::map<std::string, std::string>{{"app", "0-1"}});
    CHECK(good(db::runs::machines(db.c(), r.run())).front().environment_before > 0);
    CHECK(good(db::runs::phases(db.c(), r.run())).front().end_ns == 2'000);
    const auto processes = good(db::runs::processes(db.c(), r.run()));
    CHECK(processes.front().observed_cpus == "0-1");
    CHECK(processes.front().exit == "0");
    CHECK(good(db::artifacts::of_run(db.c(), r.run())).front().stored_bytes == 0);
}

TEST_CASE("the end of an agent's run by its next start comes once and is a candidate for the next attempt") {
    Scratch db;
    const Rig r = rig(db.c());
    good(ingest::store_batch(db.c(), r.machine.id, {1, {event_record(1, r.run(), state("measuring"))}}));
    const auto ended = good(ingest::store_batch(
        db.c(), r.machine.id, {2, {event_record(1, r.run(), state("interrupted", "the agent died"))}}));
    CHECK(ended.interrupted == std::vector<model::Id>{r.run()});
    const auto late =
        good(ingest::store_batch(db.c(), r.machine.id, {2, {event_record(2, r.run(), state("completed"))}}));
    CHECK(late.to_finish.empty());
    CHECK(good(db::runs::get(db.c(), r.run())).reason == "the agent died");
    CHECK(good(db::events::list(db.c(), "run/" + std::to_string(r.run()), {})).items.front().what == "late_state");
}

TEST_CASE("the newest frames of a living run can be followed") {
    Scratch db;
    const Rig r = rig(db.c());
    protocol::RecordBatch batch{1, {}};
    for (std::uint64_t seq = 1; seq <= 10; ++seq)
        batch.records.push_back(frame_record(seq, frame(r.run(), std::int64_t(seq), double(seq))));
    good(ingest::store_batch(db.c(), r.machine.id, batch));
    const auto tail = good(db::samples::live_tail(db.c(), r.run(), 3));
    REQUIRE(tail.size() == 3);
    CHECK(tail.front().seq == 8);
    CHECK(tail.back().frame.samples.front().value == 10);
    CHECK(good(db::samples::live_tail(db.c(), r.run(), 100, 1, 9)).size() == 1);
    CHECK(good(db::samples::live_tail(db.c(), r.run(), 100, 1, 10)).empty());
}
