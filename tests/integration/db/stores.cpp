#include "controller/db/events.hpp"
#include "controller/db/tokens.hpp"
#include "tests/integration/db/scratch.hpp"

#include <thread>

using namespace perfrig;
using namespace perfrig::test;
using model::MachineState;

TEST_CASE("a machine enrols once, says hello and is remembered") {
    Scratch db;
    const auto first = good(db::machines::enrol(db.c(), "xeon", {{"lab", "one"}}));
    CHECK(good(db::machines::enrol(db.c(), "xeon", {{"lab", "two"}})).id == first.id);
    CHECK(first.state == MachineState::enrolling);
    db::machines::HelloUpdate hello;
    hello.boot_id = "boot-1";
    hello.epoch = 7;
    hello.profile = {{"roles", {{"app", "0-3"}}}};
    hello.environment = {{"fingerprint", "f1"}, {"facts", {{"kernel", "6.1"}}}, {"raw", Json::object()}};
    const auto after = good(db::machines::hello(db.c(), first.id, hello));
    CHECK(after.profile == hello.profile);
    CHECK(after.last_seen_utc_ns.has_value());
    CHECK(good(db::machines::environment(db.c(), after.environment_id)).facts["kernel"] == "6.1");
    CHECK(good(db::machines::hello(db.c(), first.id, hello)).environment_id == after.environment_id);
    hello.epoch = 6;
    CHECK(db::machines::hello(db.c(), first.id, hello).error().kind == ErrorKind::conflict);
    CHECK(db::machines::enrol(db.c(), "Not A Name", Json::object()).error().kind == ErrorKind::bad_input);
    CHECK(db::machines::find(db.c(), "nobody").error().kind == ErrorKind::not_found);
    CHECK(good(db::machines::unseen_for(db.c(), Milliseconds(60'000))).empty());
}

TEST_CASE("a machine's state changes only from the states named") {
    Scratch db;
    const auto machine = idle_machine(db.c(), "xeon");
    const MachineState held[] = {MachineState::held}, idle[] = {MachineState::idle};
    CHECK(!good(db::machines::change_state(db.c(), machine.id, held, MachineState::quarantined, "", "test")));
    CHECK(good(db::machines::change_state(db.c(), machine.id, idle, MachineState::unreachable, "gone", "test")));
    const auto after = good(db::machines::find(db.c(), "xeon"));
    CHECK(after.state == MachineState::unreachable);
    CHECK(after.previous_state == MachineState::idle);
    CHECK(good(db::events::list(db.c(), "machine/xeon", {})).items.front().what == "state");
}

TEST_CASE("a held machine gets no block, a leased one drains first") {
    Scratch db;
    const Rig r = rig(db.c());
    CHECK(good(db::machines::hold(db.c(), "ryzen", "a test", "me")).state == MachineState::draining);
    good(db::queue::end(db.c(), r.machine.id, r.granted.lease.token, model::BlockState::done, ""));
    CHECK(good(db::machines::find(db.c(), "ryzen")).state == MachineState::held);
    good(db::submissions::create(db.c(), submission(1)));
    CHECK(!good(db::queue::grant_next(db.c(), r.machine.id, Milliseconds(1000), Milliseconds(1000))));
    CHECK(good(db::machines::release(db.c(), "ryzen", "me")).state == MachineState::idle);
    CHECK(db::machines::release(db.c(), "ryzen", "me").error().kind == ErrorKind::conflict);
    CHECK(good(db::queue::grant_next(db.c(), r.machine.id, Milliseconds(1000), Milliseconds(1000))));
}

TEST_CASE("tokens are found by hash until they are revoked") {
    Scratch db;
    const auto machine = idle_machine(db.c(), "xeon");
    good(db::tokens::create(db.c(), "h1", model::TokenKind::agent, "xeon", machine.id));
    good(db::tokens::create(db.c(), "h1", model::TokenKind::agent, "xeon", machine.id));
    good(db::tokens::create(db.c(), "h2", model::TokenKind::scrape, "prometheus"));
    CHECK(db::tokens::create(db.c(), "h1", model::TokenKind::user, "x").error().kind == ErrorKind::conflict);
    CHECK(db::tokens::create(db.c(), "h3", model::TokenKind::agent, "no machine").error().kind == ErrorKind::bad_input);
    CHECK(good(db::tokens::find(db.c(), "h1"))->machine_name == "xeon");
    CHECK(good(db::tokens::scrape_hashes(db.c())) == std::vector<std::string>{"h2"});
    CHECK(good(db::tokens::any_of_kind(db.c(), model::TokenKind::agent)));
    good(db::tokens::revoke(db.c(), "h1"));
    CHECK(!good(db::tokens::find(db.c(), "h1")));
    CHECK(!good(db::tokens::any_of_kind(db.c(), model::TokenKind::agent)));
    CHECK(good(db::tokens::list(db.c())).size() == 2);
}

TEST_CASE("ten thousand cells are stored as they were given") {
    Scratch db;
    const auto wanted = submission(10'000);
    const auto made = good(db::submissions::create(db.c(), wanted));
    CHECK(count(db.c(), "select count(*) from cell") == 10'000);
    CHECK(count(db.c(), "select count(*) from run where state = 'planned'") == 10'000);
    REQUIRE(made.runs.size() == 10'000);
    const auto run = good(db::runs::get(db.c(), made.runs[4321]));
    CHECK(run.position == 4321);
    CHECK(run.levels == std::map<std::string, std::string>{{"connections", "4321"}});
    CHECK(run.resolved["measure_ms"] == 1000);
    CHECK(good(db::submissions::counts(db.c(), made.id)).total() == 10'000);
    // Every run id has its partitions.
    CHECK(count(db.c(), "select count(*) from pg_inherits where inhparent = 'live_frame'::regclass") >= 2);
}

TEST_CASE("an idempotency key stands for one request of one token") {
    Scratch db;
    auto wanted = submission(2);
    wanted.idempotency_token = "token-a";
    wanted.idempotency_key = "nightly-1";
    wanted.request_sha = "body-1";
    const auto first = good(db::submissions::create(db.c(), wanted));
    const auto again = good(db::submissions::create(db.c(), wanted));
    CHECK(again.existed);
    CHECK(again.id == first.id);
    auto other = wanted;
    other.request_sha = "body-2";
    CHECK(db::submissions::create(db.c(), other).error().kind == ErrorKind::bad_input);
    other.idempotency_token = "token-b";
    CHECK(good(db::submissions::create(db.c(), other)).id != first.id);
    CHECK(count(db.c(), "select count(*) from cell") == 4);
}

TEST_CASE("the same key from many at once makes one submission") {
    Scratch db;
    auto wanted = submission(3);
    wanted.idempotency_token = "token";
    wanted.idempotency_key = "key";
    std::vector<std::thread> threads;
    std::vector<model::Id> ids(4);
    for (std::size_t i = 0; i < ids.size(); ++i)
        threads.emplace_back([&, i] {
            const auto connection = db.connect();
            if (const auto made = db::submissions::create(*connection, wanted)) ids[i] = made->id;
        });
    for (auto& thread : threads) thread.join();
    CHECK(ids == std::vector<model::Id>(4, ids[0]));
    CHECK(ids[0] > 0);
    CHECK(count(db.c(), "select count(*) from submission") == 1);
}

TEST_CASE("a submission that can't be stored whole is not stored") {
    Scratch db;
    auto wanted = submission(2);
    wanted.runs[1].cell = wanted.runs[0].cell; // two runs of one cell, replicate and attempt
    CHECK(!db::submissions::create(db.c(), wanted));
    CHECK(count(db.c(), "select count(*) from submission") == 0);
}

TEST_CASE("lists page from the newest to the oldest") {
    Scratch db;
    for (int i = 0; i < 5; ++i) good(db::submissions::create(db.c(), submission(1)));
    const auto first = good(db::submissions::list(db.c(), {0, 2}));
    REQUIRE(first.items.size() == 2);
    const auto second = good(db::submissions::list(db.c(), {first.next, 2}));
    const auto third = good(db::submissions::list(db.c(), {second.next, 2}));
    CHECK(first.items[0].id > first.items[1].id);
    CHECK(first.items[1].id > second.items[0].id);
    CHECK(third.items.size() == 1);
    CHECK(third.next == 0);
    CHECK(good(db::submissions::list(db.c(), {}, model::SubmissionState::running)).items.empty());
    CHECK(good(db::submissions::experiments(db.c(), {})).items.front().submissions == 5);
    db::runs::Filter filter;
    filter.submission = first.items[0].id;
    CHECK(good(db::runs::list(db.c(), filter, {})).items.size() == 1);
}
