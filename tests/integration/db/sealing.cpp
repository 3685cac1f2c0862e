#include "controller/db/samples.hpp"
#include "controller/ingest/ingest.hpp"
#include "tests/integration/db/scratch.hpp"

#include <algorithm>
#include <map>
#include <random>

using namespace perfrig;
using namespace perfrig::test;

namespace {

using Truth = std::map<int, std::vector<model::Point>>;

// What the generator wrote down.
struct Generator {
    model::Id run = 0, machine = 0;
    std::mt19937_64 random{11};
    std::uint64_t seq = 0;
    std::int64_t time_ns = 1'000'000'000;
    Truth truth{};

    protocol::SpoolRecord frame(int most_series) {
        protocol::SampleFrame out{run, time_ns, {}};
        time_ns += 1 + std::int64_t(random() % 2'000'000'000);
        const int n = 1 + int(random() % std::uint64_t(most_series));
        for (int id = 1; id <= n; ++id) {
            const double value = double(random() % 1'000'000) / 64;
            out.samples.push_back({std::uint32_t(id), value});
            truth[id].push_back({out.time_ns, value});
        }
        return frame_record(++seq, out);
    }
};

void send(db::Connection& c, Generator& g, std::int64_t epoch, int frames, int most_series) {
    for (int sent = 0; sent < frames;) {
        protocol::RecordBatch batch{epoch, {}};
        for (; sent < frames && batch.records.size() < 500; ++sent) batch.records.push_back(g.frame(most_series));
        good(ingest::store_batch(c, g.machine, batch));
    }
}

void declare(db::Connection& c, Generator& g, std::int64_t epoch, int series_count) {
    protocol::RecordBatch batch{epoch, {}};
    for (int id = 1; id <= series_count; ++id)
        batch.records.push_back(event_record(++g.seq, g.run, series(std::uint32_t(id), "s" + std::to_string(id))));
    good(ingest::store_batch(c, g.machine, batch));
}

Truth stored(db::Connection& c, model::Id run) {
    Truth out;
    good(db::samples::each_chunk(c, run, {}, [&](const db::samples::Chunk& chunk) {
        auto& points = out[chunk.series];
        points.insert(points.end(), chunk.points.begin(), chunk.points.end());
        return true;
    }));
    for (auto& [id, points] : out) std::ranges::stable_sort(points, {}, &model::Point::time_ns);
    return out;
}

} // namespace

TEST_CASE("sealing keeps every point exactly once and can be repeated") {
    Scratch db;
    const Rig r = rig(db.c());
    Generator g{r.run(), r.machine.id};
    declare(db.c(), g, 1, 7);
    send(db.c(), g, 1, 9'000, 7); // more than two chunks of the first series
    CHECK(db::samples::seal(db.c(), r.run()).error().kind == ErrorKind::conflict); // it still runs
    good(db::runs::change_state(db.c(), r.run(), model::RunState::measuring, "", std::nullopt, "test"));
    good(db::runs::change_state(db.c(), r.run(), model::RunState::completed, "", std::nullopt, "test"));
    const auto first = good(db::samples::seal(db.c(), r.run()));
    CHECK(first.frames == 9'000);
    CHECK(first.chunks >= 9);
    CHECK(stored(db.c(), r.run()) == g.truth);
    CHECK(count(db.c(), "select count(*) from live_frame") == 0);
    CHECK(count(db.c(), "select max(cardinality(values)) from series_chunk") == 4'096);
    CHECK(count(db.c(), "select count(*) from series_chunk where offsets_ns[1] <> 0 or cardinality(offsets_ns) <> "
                        "cardinality(values)") == 0);
    CHECK(good(db::runs::get(db.c(), r.run())).sealed_utc_ns.has_value());
    CHECK(good(db::samples::seal(db.c(), r.run())).frames == 0);
    CHECK(stored(db.c(), r.run()) == g.truth);
    // What an analyst's view says is the same.
    std::int64_t points = 0;
    for (const auto& [id, one] : g.truth) points += std::int64_t(one.size());
    CHECK(count(db.c(), "select count(*) from sample") == points);
}

TEST_CASE("frames that come after the seal are merged in, even where they begin at a chunk's first instant") {
    Scratch db;
    const Rig r = rig(db.c());
    Generator g{r.run(), r.machine.id};
    declare(db.c(), g, 1, 2);
    send(db.c(), g, 1, 5'000, 2);
    good(ingest::store_batch(db.c(), r.machine.id, {1, {event_record(++g.seq, r.run(), state("measuring"))}}));
    good(ingest::store_batch(db.c(), r.machine.id, {1, {event_record(++g.seq, r.run(), state("completed"))}}));
    good(ingest::finish_run(db.c(), r.run()));
    const std::int64_t first_instant = g.truth[1].front().time_ns;
    protocol::SampleFrame same_start{r.run(), first_instant, {{1, -5}}}, older{r.run(), 1, {{1, -6}, {2, -7}}};
    const auto late = good(ingest::store_batch(
        db.c(), r.machine.id, {1, {frame_record(g.seq + 1, same_start), frame_record(g.seq + 2, older)}}));
    CHECK(late.to_finish == std::vector<model::Id>{r.run()});
    CHECK(good(db::runs::unsealed(db.c(), 5)).size() == 1);
    good(ingest::finish_run(db.c(), r.run()));
    good(ingest::finish_run(db.c(), r.run()));
    auto now = stored(db.c(), r.run());
    auto expected = g.truth;
    expected[1].push_back({first_instant, -5});
    expected[1].push_back({1, -6});
    expected[2].push_back({1, -7});
    const auto by_time_and_value = [](const model::Point& p) { return std::pair(p.time_ns, p.value); };
    for (auto* all : {&now, &expected})
        for (auto& [id, points] : *all) std::ranges::sort(points, {}, by_time_and_value);
    CHECK(now == expected);
    CHECK(good(db::runs::unsealed(db.c(), 5)).empty());
}

TEST_CASE("a seal whose transaction is lost changed nothing and is done again") {
    Scratch db;
    const Rig r = rig(db.c());
    Generator g{r.run(), r.machine.id};
    declare(db.c(), g, 1, 3);
    send(db.c(), g, 1, 1'000, 3);
    good(db::runs::change_state(db.c(), r.run(), model::RunState::failed, "x", std::nullopt, "test"));
    {
        const auto victim = db.connect();
        auto transaction = good(db::Transaction::begin(*victim));
        good(db::samples::seal(*victim, r.run()));
        good(db.c().exec("select pg_terminate_backend($1)", {victim->process_id()}));
        CHECK(!transaction.commit());
    }
    CHECK(count(db.c(), "select count(*) from live_frame") == 1'000);
    CHECK(count(db.c(), "select count(*) from series_chunk") == 0);
    good(db::samples::seal(db.c(), r.run()));
    CHECK(stored(db.c(), r.run()) == g.truth);
}

TEST_CASE("samples of a series that was never declared are kept and found") {
    Scratch db;
    const Rig r = rig(db.c());
    good(ingest::store_batch(
        db.c(), r.machine.id,
        {1, {frame_record(1, {r.run(), 5, {{9, 1.0}}}), event_record(2, r.run(), state("failed", "x"))}}));
    good(ingest::finish_run(db.c(), r.run()));
    CHECK(count(db.c(), "select count(*) from series_chunk where series_id = 9") == 1);
    CHECK(good(db::runs::findings(db.c(), r.run())).front().check_name == "series_undeclared");
}

TEST_CASE(
    "a run that can't be finished is given up with a finding, keeps its frames, and holds its submission no longer") {
    Scratch db;
    const Rig r = rig(db.c());
    Generator g{r.run(), r.machine.id};
    declare(db.c(), g, 1, 2);
    send(db.c(), g, 1, 50, 2);
    good(db::runs::change_state(db.c(), r.run(), model::RunState::failed, "x", std::nullopt, "test"));
    good(ingest::give_up_run(db.c(), r.run(), "no room"));
    CHECK(good(db::runs::unsealed(db.c(), 5)).empty());
    CHECK(count(db.c(), "select count(*) from live_frame") == 50);
    const auto findings = good(db::runs::findings(db.c(), r.run()));
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().message.find("no room") != std::string::npos);
    good(ingest::finish_run(db.c(), r.run())); // whoever mends it may do it after all
    CHECK(stored(db.c(), r.run()) == g.truth);
}

TEST_CASE("a large run is sealed whole") {
    Scratch db;
    const Rig r = rig(db.c());
    protocol::RecordBatch batch{1, {}};
    std::uint64_t seq = 0;
    for (int tick = 0; tick < 360; ++tick) { // 2,000 series, 6 minutes: 720,000 points
        protocol::SampleFrame frame{r.run(), std::int64_t(tick) * 1'000'000'000, {}};
        for (std::uint32_t id = 1; id <= 2'000; ++id) frame.samples.push_back({id, double(tick) * id});
        batch.records.push_back(frame_record(++seq, frame));
        if (batch.records.size() == 30) {
            good(ingest::store_batch(db.c(), r.machine.id, batch));
            batch.records.clear();
        }
    }
    good(db::runs::change_state(db.c(), r.run(), model::RunState::failed, "x", std::nullopt, "test"));
    const auto before = std::chrono::steady_clock::now();
    const auto sealed = good(db::samples::seal(db.c(), r.run()));
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    MESSAGE("720,000 points of 2,000 series sealed in " << took << " s");
    CHECK(sealed.points == 720'000);
    CHECK(count(db.c(), "select sum(cardinality(values)) from series_chunk") == 720'000);
}

TEST_CASE("a series is read in pages that hold every point once, whatever their size and however late frames came") {
    Scratch db;
    const Rig r = rig(db.c());
    Generator g{r.run(), r.machine.id};
    declare(db.c(), g, 1, 2);
    send(db.c(), g, 1, 9'000, 2);
    const std::int64_t instant = g.truth[1][4'500].time_ns;
    good(ingest::store_batch(db.c(), r.machine.id, {1, {event_record(++g.seq, r.run(), state("failed", "x"))}}));
    good(db::samples::seal(db.c(), r.run()));
    // Late: two more of one instant, and one before all others.
    const protocol::SampleFrame same{r.run(), instant, {{1, -5}}}, older{r.run(), 1, {{1, -6}}};
    good(ingest::store_batch(
        db.c(), r.machine.id,
        {1, {frame_record(++g.seq, same), frame_record(++g.seq, same), frame_record(++g.seq, older)}}));
    good(db::samples::seal(db.c(), r.run()));
    auto truth = g.truth[1];
    for (const auto& [time_ns, value] : {std::pair(instant, -5.0), {instant, -5.0}, {std::int64_t(1), -6.0}})
        truth.push_back({time_ns, value});
    std::ranges::sort(truth, {}, [](const model::Point& p) { return std::pair(p.time_ns, p.value); });
    for (const std::size_t limit : {std::size_t(700), std::size_t(4'096), std::size_t(1'000'000)}) {
        std::vector<model::Point> read;
        std::int64_t after_ns = INT64_MIN;
        for (bool more = true; more;) {
            const auto page = good(db::samples::read_points(db.c(), r.run(), r.machine.id, 1, after_ns, limit));
            CHECK(page.points.size() <= limit + 2);
            read.insert(read.end(), page.points.begin(), page.points.end());
            more = page.more;
            after_ns = read.back().time_ns;
        }
        std::ranges::sort(read, {}, [](const model::Point& p) { return std::pair(p.time_ns, p.value); });
        CHECK(read == truth);
    }
    const auto none = good(db::samples::read_points(db.c(), r.run(), r.machine.id, 1, truth.back().time_ns, 10));
    CHECK(none.points.empty());
    CHECK(!none.more);
}
