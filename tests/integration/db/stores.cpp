#include "controller/db/events.hpp"
#include "controller/db/feed.hpp"
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

TEST_CASE("a start of a machine's agent belongs to the first that was it") {
    Scratch db;
    const auto xeon = idle_machine(db.c(), "xeon"), ryzen = idle_machine(db.c(), "ryzen");
    using Starts = std::vector<db::machines::Start>;
    const auto claim = [&](const model::Machine& machine, const Starts& starts) {
        return good(db::machines::claim_starts(db.c(), machine.id, starts));
    };
    CHECK(!claim(xeon, Starts{{7, "a"}, {6, ""}}));
    CHECK(!claim(xeon, Starts{{7, "a"}, {6, ""}})); // the same again
    CHECK(!claim(ryzen, Starts{{7, "b"}}));         // another machine's
    CHECK(claim(xeon, Starts{{7, "b"}}) == 7);
    CHECK(claim(xeon, Starts{{8, "c"}, {6, "d"}}) == 6); // what lies in its spool is another's
    // Of two at once one wins.
    auto other = db.connect();
    good(db.c().exec("begin"));
    CHECK(!claim(xeon, Starts{{9, "a"}}));
    std::optional<std::int64_t> second;
    std::thread late([&] {
        const Starts starts{{9, "b"}};
        second = good(db::machines::claim_starts(*other, xeon.id, starts));
    });
    good(db.c().exec("commit"));
    late.join();
    CHECK(second == 9);
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

TEST_CASE("a submission's counts, current runs and pages of runs take the last attempts and miss none") {
    Scratch db;
    const Rig r = rig(db.c(), 5);
    const auto move = [&](model::Id run, model::RunState to) {
        good(db::runs::change_state(db.c(), run, to, "", std::nullopt, "test"));
    };
    move(r.run(0), model::RunState::measuring);
    move(r.run(0), model::RunState::interrupted);
    const auto again = good(db::queue::retry(db.c(), r.run(0), Milliseconds(60'000)));
    move(r.run(1), model::RunState::measuring);
    move(r.run(1), model::RunState::completed);
    move(r.run(3), model::RunState::measuring);
    auto counts = good(db::submissions::counts(db.c(), r.submission.id));
    CHECK(counts.by_state == std::map<model::RunState, std::int64_t>{{model::RunState::assigned, 3},
                                                                     {model::RunState::measuring, 1},
                                                                     {model::RunState::completed, 1}});
    CHECK(counts.by_verdict == std::map<model::Verdict, std::int64_t>{{model::Verdict::unreviewed, 1}});
    const auto current = good(db::runs::current(db.c(), r.submission.id, 3));
    REQUIRE(current.size() == 3); // of four
    CHECK(current[0].id == r.run(3));
    CHECK(current[1].id == again->id);
    CHECK(current[2].id == r.run(2));
    CHECK(good(db::submissions::blocks(db.c(), r.submission.id)).at(0).machine_name == r.machine.name);
    good(db::submissions::create(db.c(), submission(3))); // another's runs are not shown
    std::vector<model::Id> seen;
    model::Id after = 0;
    for (bool more = true; more;) {
        const auto page = good(db::runs::in_order(db.c(), r.submission.id, after, 2));
        for (const auto& run : page.items) seen.push_back(run.id);
        more = page.more;
        after = seen.back();
    }
    CHECK(seen == std::vector<model::Id>{r.run(0), again->id, r.run(1), r.run(2), r.run(3), r.run(4)});
}

TEST_CASE("events of a submission, its runs and its blocks come by a cursor, and no others") {
    Scratch db;
    const Rig r = rig(db.c(), 1);
    const auto other = good(db::submissions::create(db.c(), submission(1)));
    const auto block = "block/" + std::to_string(r.granted.block.id);
    good(db::events::add(db.c(), "me", "run/" + std::to_string(r.run()), "first"));
    good(db::events::add(db.c(), "me", "run/" + std::to_string(other.runs[0]), "stranger"));
    good(db::events::add(db.c(), "me", block, "second"));
    good(db::events::add(db.c(), "me", "run/none", "nobody's"));
    const auto whats = [](const std::vector<model::Event>& events) {
        std::vector<std::string> out;
        for (const auto& event : events) out.push_back(event.what);
        return out;
    };
    const auto all = good(db::feed::of_submission(db.c(), r.submission.id, 0, 10));
    CHECK(whats(all) == std::vector<std::string>{"queued", "first", "second"});
    CHECK(whats(good(db::feed::of_submission(db.c(), r.submission.id, all[1].id, 10))) ==
          std::vector<std::string>{"second"});
}

TEST_CASE("a machine is forgotten only when nothing uses it; its name is free, its token is worth nothing, and the "
          "history of its runs stays") {
    Scratch db;
    const Rig r = rig(db.c(), 1);
    const Milliseconds silent_for(15'000);
    good(db::tokens::create(db.c(), "hash", model::TokenKind::agent, "agent", r.machine.id));
    CHECK(db::machines::forget(db.c(), "ryzen", silent_for, "me").error().kind == ErrorKind::conflict); // leased
    good(db::queue::revoke(db.c(), r.machine.id, "gone", "me"));
    good(db::machines::seen(db.c(), r.machine.id, {}, {}));
    CHECK(db::machines::forget(db.c(), "ryzen", silent_for, "me").error().kind == ErrorKind::conflict); // heard
    good(db.c().exec("update machine set last_seen = now() - interval '16 seconds'"));
    good(db::machines::forget(db.c(), "ryzen", silent_for, "me"));
    CHECK(db::machines::forget(db.c(), "ryzen", silent_for, "me").error().kind == ErrorKind::not_found);
    CHECK(db::machines::find(db.c(), "ryzen").error().kind == ErrorKind::not_found);
    CHECK(good(db::machines::list(db.c())).empty());
    CHECK(!good(db::tokens::find(db.c(), "hash")));
    CHECK(!good(db::queue::grant_next(db.c(), r.machine.id, silent_for, silent_for)));
    CHECK(db::machines::hello(db.c(), r.machine.id, {}).error().kind == ErrorKind::forbidden);
    CHECK(good(db::runs::get(db.c(), r.run())).machine_name == "ryzen");
    CHECK(count(db.c(), "select count(*) from event where subject = 'machine/ryzen' and what = 'forgotten'") == 1);
    // Another machine takes the name, and both's runs are found by it.
    const auto next = idle_machine(db.c(), "ryzen");
    CHECK(next.id != r.machine.id);
    CHECK(good(db::machines::find(db.c(), "ryzen")).id == next.id);
    db::runs::Filter filter;
    filter.machine = "ryzen";
    filter.state = model::RunState::interrupted;
    CHECK(good(db::runs::list(db.c(), filter, {})).items.size() == 1);
}
