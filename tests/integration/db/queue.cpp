#include "tests/integration/db/scratch.hpp"

#include <thread>

using namespace perfrig;
using namespace perfrig::test;
using model::RunState;
using model::SubmissionState;

namespace {
constexpr Milliseconds lease_time{15'000}, start_time{60'000};

std::optional<db::queue::Granted> grant(db::Connection& c, const model::Machine& machine) {
    return good(db::queue::grant_next(c, machine.id, lease_time, start_time));
}
void end_run(db::Connection& c, model::Id run, RunState state) {
    good(db::runs::change_state(c, run, RunState::measuring, "", lease_time, "test"));
    good(db::runs::change_state(c, run, state, "because", std::nullopt, "test"));
    good(c.exec("update run set sealed_at = now() where id = $1", {run}));
}
} // namespace

TEST_CASE("schedulers that race for one machine grant one lease") {
    Scratch db;
    const auto machine = idle_machine(db.c(), "ryzen");
    for (int i = 0; i < 8; ++i) good(db::submissions::create(db.c(), submission(1)));
    std::vector<std::thread> threads;
    std::atomic<int> granted = 0, failed = 0;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            const auto connection = db.connect();
            const auto one = db::queue::grant_next(*connection, machine.id, lease_time, start_time);
            if (!one)
                failed += 1;
            else if (*one)
                granted += 1;
        });
    for (auto& thread : threads) thread.join();
    CHECK(failed == 0);
    CHECK(granted == 1);
    CHECK(count(db.c(), "select count(*) from block where state = 'granted'") == 1);
}

TEST_CASE("schedulers that race for blocks give each machine another one") {
    Scratch db;
    std::vector<model::Machine> machines;
    for (int i = 0; i < 4; ++i) machines.push_back(idle_machine(db.c(), "m" + std::to_string(i)));
    for (int i = 0; i < 4; ++i) good(db::submissions::create(db.c(), submission(1)));
    std::vector<std::thread> threads;
    std::atomic<int> granted = 0;
    for (const auto& machine : machines)
        threads.emplace_back([&] {
            const auto connection = db.connect();
            const auto one = db::queue::grant_next(*connection, machine.id, lease_time, start_time);
            if (one && *one) granted += 1;
        });
    for (auto& thread : threads) thread.join();
    CHECK(granted == 4);
    CHECK(count(db.c(), "select count(distinct block_id) from lease") == 4);
    CHECK(count(db.c(), "select count(distinct token) from lease") == 4);
}

TEST_CASE("what waits is granted by priority, then age, to a machine that was asked for") {
    Scratch db;
    auto old = submission(1), urgent = submission(1), elsewhere = submission(1);
    urgent.priority = 5;
    elsewhere.priority = 9;
    elsewhere.machine_labels = {{"cpu", "xeon"}};
    const auto old_id = good(db::submissions::create(db.c(), old)).id;
    const auto urgent_id = good(db::submissions::create(db.c(), urgent)).id;
    const auto elsewhere_id = good(db::submissions::create(db.c(), elsewhere)).id;
    CHECK(good(db::queue::pending(db.c(), 10)).front().block.submission_id == elsewhere_id);
    CHECK(grant(db.c(), idle_machine(db.c(), "a", {{"cpu", "ryzen"}}))->block.submission_id == urgent_id);
    CHECK(grant(db.c(), idle_machine(db.c(), "b"))->block.submission_id == old_id);
    CHECK(!grant(db.c(), idle_machine(db.c(), "c")));
    CHECK(grant(db.c(), idle_machine(db.c(), "d", {{"cpu", "xeon"}, {"lab", "1"}}))->block.submission_id ==
          elsewhere_id);
}

TEST_CASE("a granted block carries its runs, in order and assigned") {
    Scratch db;
    const Rig r = rig(db.c(), 3);
    REQUIRE(r.granted.runs.size() == 3);
    for (int i = 0; i < 3; ++i) {
        CHECK(r.granted.runs[std::size_t(i)].position == i);
        CHECK(r.granted.runs[std::size_t(i)].state == RunState::assigned);
        CHECK(r.granted.runs[std::size_t(i)].machine_id == r.machine.id);
        CHECK(r.granted.runs[std::size_t(i)].deadline_utc_ns.has_value());
        CHECK(r.granted.runs[std::size_t(i)].resolved["measure_ms"] == 1000);
    }
    CHECK(good(db::submissions::get(db.c(), r.submission.id)).state == SubmissionState::running);
    CHECK(good(db::machines::find(db.c(), "ryzen")).state == model::MachineState::leased);
}

TEST_CASE("an old token changes nothing") {
    Scratch db;
    const Rig r = rig(db.c());
    const auto old = r.granted.lease.token;
    CHECK(good(db::queue::renew(db.c(), r.machine.id, old, lease_time)));
    good(db::queue::revoke(db.c(), r.machine.id, "power cycle", "me"));
    const auto next = grant(db.c(), r.machine);
    REQUIRE(next);
    CHECK(next->lease.token > old);
    CHECK(!good(db::queue::renew(db.c(), r.machine.id, old, lease_time)));
    CHECK(!good(db::queue::set_state(db.c(), r.machine.id, old, model::LeaseState::releasing)));
    CHECK(!good(db::queue::end(db.c(), r.machine.id, old, model::BlockState::done, "")));
    CHECK(good(db::queue::lease_of(db.c(), r.machine.id))->token == next->lease.token);
}

TEST_CASE("a lease that isn't renewed falls silent, which frees nothing, and comes back by renewal") {
    Scratch db;
    const Rig r = rig(db.c());
    good(db::queue::set_state(db.c(), r.machine.id, r.granted.lease.token, model::LeaseState::active));
    CHECK(good(db::queue::mark_silent(db.c())).empty());
    good(db.c().exec("update lease set renew_by = now() - interval '1 second'"));
    REQUIRE(good(db::queue::mark_silent(db.c())).size() == 1);
    CHECK(good(db::queue::mark_silent(db.c())).empty());
    CHECK(good(db::machines::find(db.c(), "ryzen")).state == model::MachineState::unreachable);
    good(db::submissions::create(db.c(), submission(1)));
    CHECK(!grant(db.c(), r.machine));
    CHECK(good(db::queue::renew(db.c(), r.machine.id, r.granted.lease.token, lease_time)));
    CHECK(good(db::queue::lease_of(db.c(), r.machine.id))->state == model::LeaseState::active);
    CHECK(good(db::machines::find(db.c(), "ryzen")).state == model::MachineState::leased);
}

TEST_CASE("revoking interrupts what was assigned, makes the next attempts and lets the block wait again") {
    Scratch db;
    const Rig r = rig(db.c(), 3);
    end_run(db.c(), r.run(0), RunState::completed);
    CHECK(good(db::queue::revoke(db.c(), r.machine.id, "dead", "me")) == r.granted.block.id);
    CHECK(good(db::runs::get(db.c(), r.run(0))).state == RunState::completed);
    CHECK(good(db::runs::get(db.c(), r.run(1))).state == RunState::interrupted);
    const auto next = grant(db.c(), r.machine);
    REQUIRE(next);
    CHECK(next->block.id == r.granted.block.id);
    REQUIRE(next->runs.size() == 2);
    CHECK(next->runs[0].attempt == 2);
    CHECK(next->runs[0].retry_of == r.run(1));
    CHECK(!good(db::queue::revoke(db.c(), 999'999, "none", "me")));
}

TEST_CASE("a run that was interrupted as its block ended is found, and its block waits anew") {
    Scratch db;
    const Rig r = rig(db.c(), 1);
    end_run(db.c(), r.run(0), RunState::interrupted);
    CHECK(good(db::queue::end(db.c(), r.machine.id, r.granted.lease.token, model::BlockState::done, "")));
    CHECK(good(db::queue::retryable(db.c(), 10)) == std::vector<model::Id>{r.run(0)});
    const auto second = good(db::queue::retry(db.c(), r.run(0), start_time));
    REQUIRE(second);
    CHECK(second->state == RunState::planned);
    CHECK(good(db::queue::retryable(db.c(), 10)).empty());
    const auto next = grant(db.c(), r.machine);
    REQUIRE(next);
    CHECK(next->block.id == r.granted.block.id);
}

TEST_CASE("only an interrupted run is tried again, once each time and three times in all") {
    Scratch db;
    const Rig r = rig(db.c(), 2);
    end_run(db.c(), r.run(1), RunState::failed);
    CHECK(!good(db::queue::retry(db.c(), r.run(1), start_time)));
    end_run(db.c(), r.run(0), RunState::interrupted);
    CHECK(good(db::queue::retryable(db.c(), 10)).empty()); // its machine's scheduler makes it
    const auto second = good(db::queue::retry(db.c(), r.run(0), start_time));
    REQUIRE(second);
    CHECK(second->state == RunState::assigned); // its block is in hand
    CHECK(second->machine_id == r.machine.id);
    CHECK(good(db::queue::retry(db.c(), r.run(0), start_time))->id == second->id);
    CHECK(good(db::queue::retryable(db.c(), 10)).empty());
    end_run(db.c(), second->id, RunState::interrupted);
    const auto third = good(db::queue::retry(db.c(), second->id, start_time));
    REQUIRE(third);
    end_run(db.c(), third->id, RunState::interrupted);
    CHECK(!good(db::queue::retry(db.c(), third->id, start_time)));
    CHECK(third->resolved_sha == r.granted.runs[0].resolved_sha);
}

TEST_CASE("end states never change again") {
    Scratch db;
    const Rig r = rig(db.c());
    end_run(db.c(), r.run(), RunState::completed);
    const auto change = [&](RunState to) {
        return good(db::runs::change_state(db.c(), r.run(), to, "late", std::nullopt, "test"));
    };
    CHECK(change(RunState::completed) == db::runs::Moved::already_there);
    CHECK(change(RunState::interrupted) == db::runs::Moved::already_ended);
    CHECK(change(RunState::measuring) == db::runs::Moved::already_ended);
    CHECK(good(db::runs::get(db.c(), r.run())).reason == "because");
}

TEST_CASE("a run moves only where its state machine lets it, and never stays in a state for ever") {
    Scratch db;
    const Rig r = rig(db.c(), 1);
    const auto change = [&](RunState to, std::optional<Milliseconds> deadline_in) {
        return db::runs::change_state(db.c(), r.run(), to, "", deadline_in, "test");
    };
    const auto seconds_left = [&] {
        return count(db.c(), "select extract(epoch from deadline - now())::bigint from run");
    };
    CHECK(change(RunState::completed, {}).error().kind == ErrorKind::bad_input); // it has not begun
    CHECK(good(db::runs::get(db.c(), r.run())).state == RunState::assigned);
    CHECK(good(change(RunState::measuring, Milliseconds(60'000))) == db::runs::Moved::yes);
    CHECK(seconds_left() >= 50);
    CHECK(seconds_left() <= 60);
    CHECK(change(RunState::preparing, {}).error().kind == ErrorKind::bad_input);
    CHECK(good(change(RunState::stopping, Milliseconds(0))) == db::runs::Moved::yes); // the agent said no time
    CHECK(seconds_left() > 60);
    CHECK(good(change(RunState::completed, {})) == db::runs::Moved::yes);
    CHECK(!good(db::runs::get(db.c(), r.run())).deadline_utc_ns);
}

TEST_CASE("a submission ends when its runs have ended and are sealed, and says how") {
    Scratch db;
    const Rig r = rig(db.c(), 2);
    const auto finish = [&] { return good(db::submissions::finish_if_done(db.c(), r.submission.id)); };
    end_run(db.c(), r.run(0), RunState::completed);
    CHECK(finish() == SubmissionState::running);
    end_run(db.c(), r.run(1), RunState::refused);
    CHECK(finish() == SubmissionState::running); // the block is in hand
    good(db::queue::end(db.c(), r.machine.id, r.granted.lease.token, model::BlockState::done, ""));
    good(db.c().exec("update run set sealed_at = null where id = $1", {r.run(0)}));
    CHECK(finish() == SubmissionState::running); // its samples are not sealed
    good(db.c().exec("update run set sealed_at = now()"));
    CHECK(finish() == SubmissionState::completed);
    CHECK(finish() == SubmissionState::completed);
    CHECK(good(db::submissions::get(db.c(), r.submission.id)).ended_utc_ns.has_value());
}

TEST_CASE("a submission with an interrupted run waits for the next attempt, and fails after the last") {
    Scratch db;
    const Rig r = rig(db.c());
    model::Id run = r.run();
    for (int attempt = 1; attempt <= 3; ++attempt) {
        end_run(db.c(), run, RunState::interrupted);
        if (attempt < 3) run = good(db::queue::retry(db.c(), run, start_time))->id;
        if (attempt == 2)
            good(db::queue::end(db.c(), r.machine.id, r.granted.lease.token, model::BlockState::done, ""));
        if (attempt < 3)
            CHECK(good(db::submissions::finish_if_done(db.c(), r.submission.id)) == SubmissionState::running);
    }
    CHECK(good(db::submissions::finish_if_done(db.c(), r.submission.id)) == SubmissionState::failed);
}

TEST_CASE("cancelling what waits ends it at once; what is in hand is left to the scheduler") {
    Scratch db;
    const auto waiting = good(db::submissions::create(db.c(), submission(2)));
    CHECK(good(db::submissions::request_cancel(db.c(), waiting.id, "no longer", "me")).state ==
          SubmissionState::cancelled);
    CHECK(good(db::runs::get(db.c(), waiting.runs[0])).state == RunState::cancelled);
    const Rig r = rig(db.c());
    const auto asked = good(db::submissions::request_cancel(db.c(), r.submission.id, "stop", "me"));
    CHECK(asked.state == SubmissionState::running);
    CHECK(asked.cancel_requested);
    end_run(db.c(), r.run(), RunState::interrupted);
    CHECK(!good(db::queue::retry(db.c(), r.run(), start_time)));
    good(db::queue::end(db.c(), r.machine.id, r.granted.lease.token, model::BlockState::cancelled, ""));
    CHECK(good(db::submissions::finish_if_done(db.c(), r.submission.id)) == SubmissionState::cancelled);
}

TEST_CASE("cancelling and granting at the same time never wait for each other") {
    Scratch db;
    std::vector<model::Id> submissions;
    std::vector<model::Machine> machines;
    for (int i = 0; i < 30; ++i) {
        submissions.push_back(good(db::submissions::create(db.c(), submission(1))).id);
        machines.push_back(idle_machine(db.c(), "m" + std::to_string(i)));
    }
    std::atomic<int> failed = 0;
    std::thread granting([&] {
        const auto connection = db.connect();
        for (const auto& machine : machines)
            if (!db::queue::grant_next(*connection, machine.id, lease_time, start_time)) failed += 1;
    });
    for (const model::Id id : submissions)
        if (!db::submissions::request_cancel(db.c(), id, "stop", "me")) failed += 1;
    granting.join();
    CHECK(failed == 0);
    CHECK(count(db.c(), "select count(*) from block b join submission s on s.id = b.submission_id "
                        "where b.state = 'pending' or (b.state = 'granted') <> (s.state = 'running')") == 0);
}

TEST_CASE("a machine that can't be measured on gives its block back untried, and gets no other until it is released") {
    Scratch db;
    const auto machine = idle_machine(db.c(), "ryzen");
    for (int i = 0; i < 2; ++i) good(db::submissions::create(db.c(), submission(1)));
    const auto first = grant(db.c(), machine);
    REQUIRE(first);
    CHECK(!good(db::queue::quarantine(db.c(), machine.id, first->lease.token + 1, "not this lease")));
    CHECK(good(db::queue::quarantine(db.c(), machine.id, first->lease.token, "process 12 is still there")));
    CHECK(good(db::queue::block(db.c(), first->block.id)).state == model::BlockState::pending);
    CHECK(good(db::runs::get(db.c(), first->runs[0].id)).state == RunState::planned);
    CHECK(count(db.c(), "select count(*) from run where attempt > 1 or state <> 'planned'") == 0);
    const auto after = good(db::machines::find(db.c(), "ryzen"));
    CHECK(after.state == model::MachineState::quarantined);
    CHECK(after.state_reason == "process 12 is still there");
    CHECK(!grant(db.c(), machine));
    good(db::machines::release(db.c(), "ryzen", "me"));
    const auto again = grant(db.c(), machine);
    REQUIRE(again);
    CHECK(again->block.id == first->block.id);
}
