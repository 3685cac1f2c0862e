// What becomes of a machine and its lease at hello, and what a block needs next.
#include "controller/queue/block_decision.hpp"
#include "controller/queue/hello_decision.hpp"
#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace perfrig::queue;
using model::LeaseState;
using model::MachineState;

namespace {

protocol::Hello hello(std::int64_t block = 0, std::int64_t highest_token = 0) {
    protocol::Hello out;
    out.open_block = block;
    out.highest_token = highest_token;
    return out;
}

model::Machine machine(MachineState state, MachineState previous = MachineState::idle) {
    model::Machine out;
    out.state = state;
    out.previous_state = previous;
    return out;
}

std::optional<model::Lease> lease(LeaseState state) {
    model::Lease out;
    out.block_id = 7;
    out.token = 40;
    out.state = state;
    return out;
}

} // namespace

TEST_CASE("an agent that still has its block keeps it, however long it was silent") {
    for (const auto state : {LeaseState::granted, LeaseState::active, LeaseState::silent}) {
        const auto decision =
            decide_hello(hello(7, 40), machine(MachineState::unreachable, MachineState::leased), lease(state));
        CHECK(decision.lease == LeaseStep::keep);
        CHECK(decision.keep_block == 7);
        CHECK(decision.state == MachineState::leased);
    }
}

TEST_CASE("an agent that never heard of its block is told again") {
    const auto decision = decide_hello(hello(0, 39), machine(MachineState::leased), lease(LeaseState::granted));
    CHECK(decision.lease == LeaseStep::prepare_again);
    CHECK(decision.keep_block == 0);
    CHECK(decision.state == MachineState::leased);
    // It may have another, old block in hand, or the same one from an earlier lease: it gives that up first.
    CHECK(decide_hello(hello(7, 39), machine(MachineState::leased), lease(LeaseState::granted)).lease ==
          LeaseStep::prepare_again);
    CHECK(decide_hello(hello(7, 39), machine(MachineState::leased), lease(LeaseState::granted)).keep_block == 0);
    CHECK(decide_hello(hello(6, 39), machine(MachineState::leased), lease(LeaseState::granted)).keep_block == 0);
}

TEST_CASE("a block that its agent had and has lost is taken from it") {
    for (const auto state : {LeaseState::granted, LeaseState::active, LeaseState::silent}) {
        const auto decision = decide_hello(hello(0, 40), machine(MachineState::leased), lease(state));
        CHECK(decision.lease == LeaseStep::revoke);
        CHECK(decision.keep_block == 0);
        CHECK(decision.state == MachineState::idle);
    }
}

TEST_CASE("an agent whose memory was wiped has lost its block") {
    CHECK(decide_hello(hello(0, 0), machine(MachineState::leased), lease(LeaseState::active)).lease ==
          LeaseStep::revoke);
    CHECK(decide_hello(hello(0, 0), machine(MachineState::unreachable), lease(LeaseState::silent)).lease ==
          LeaseStep::revoke);
}

TEST_CASE("a block that was being ended is ended, whether the agent heard it or not") {
    const auto heard = decide_hello(hello(0, 40), machine(MachineState::leased), lease(LeaseState::releasing));
    CHECK(heard.lease == LeaseStep::finish);
    CHECK(heard.state == MachineState::idle);
    const auto missed = decide_hello(hello(7, 40), machine(MachineState::leased), lease(LeaseState::releasing));
    CHECK(missed.lease == LeaseStep::end_again);
    CHECK(missed.keep_block == 7);
    CHECK(missed.state == MachineState::leased);
}

TEST_CASE("a block without a lease is given up") {
    const auto decision = decide_hello(hello(7, 40), machine(MachineState::unreachable), std::nullopt);
    CHECK(decision.lease == LeaseStep::none);
    CHECK(decision.keep_block == 0);
    CHECK(decision.state == MachineState::idle);
}

TEST_CASE("what a person decided about a machine outlives its silence") {
    const auto state_of = [](MachineState before, std::optional<model::Lease> held) {
        return decide_hello(hello(held ? 7 : 0, held ? 40 : 0), machine(MachineState::unreachable, before), held).state;
    };
    CHECK(state_of(MachineState::held, std::nullopt) == MachineState::held);
    CHECK(state_of(MachineState::draining, std::nullopt) == MachineState::held);
    CHECK(state_of(MachineState::draining, lease(LeaseState::silent)) == MachineState::draining);
    CHECK(state_of(MachineState::quarantined, std::nullopt) == MachineState::quarantined);
    CHECK(state_of(MachineState::enrolling, std::nullopt) == MachineState::idle);
}

TEST_CASE("a machine with settings that are not restored is not idle") {
    auto dirty = hello();
    dirty.open_changes = 2;
    CHECK(decide_hello(dirty, machine(MachineState::unreachable), std::nullopt).state == MachineState::restoring);
}

TEST_CASE("both ends must speak a common version") {
    auto asked = hello();
    CHECK(choose_version(asked) == protocol::version);
    asked.version_min = protocol::version + 1;
    asked.version_max = protocol::version + 3;
    CHECK(!choose_version(asked));
    asked.version_min = 0;
    asked.version_max = protocol::version - 1;
    CHECK(!choose_version(asked));
}

TEST_CASE("a block ends when its agent has nothing left and every run has ended, and not before") {
    BlockView view;
    view.open_runs = 1;
    view.worked = true;
    CHECK(decide_block(view) == BlockStep::none);
    view.open_runs = 0;
    CHECK(decide_block(view) == BlockStep::end_block);
    view.worked = false;
    CHECK(decide_block(view) == BlockStep::none);
    view.all_ended_for = worked_patience;
    CHECK(decide_block(view) == BlockStep::end_block);
    view.told_to_end = true;
    CHECK(decide_block(view) == BlockStep::none);
}

TEST_CASE("a block waits for the artifacts of its runs, but not for ever") {
    BlockView view;
    view.worked = true;
    view.missing_artifacts = 1;
    CHECK(decide_block(view) == BlockStep::none);
    view.all_ended_for = artifact_patience;
    CHECK(decide_block(view) == BlockStep::end_block);
}

TEST_CASE("a cancelled submission's runs are ended at the agent, which is told once a session") {
    BlockView view;
    view.open_runs = 3;
    view.cancel_requested = true;
    CHECK(decide_block(view) == BlockStep::cancel_runs);
    view.told_to_cancel = true;
    CHECK(decide_block(view) == BlockStep::none);
    view.open_runs = 0;
    view.worked = true;
    CHECK(decide_block(view) == BlockStep::end_block);
}

namespace {

protocol::Hello good_hello() {
    protocol::Hello out;
    out.machine = "xeon";
    out.epoch = 3;
    out.start_id = std::string(32, 'a');
    out.spool = {{2, 1, 5, std::string(32, 'b')}, {1, 1, 2, ""}};
    out.profile = {{"roles", {{"app", "0-3"}, {"db", "4"}}}, {"share", Json::array({Json::array({"app", "db"})})}};
    out.labels = {{"cpu", "cascade-lake"}};
    out.metrics_url = "http://127.0.0.1:9464/metrics";
    return out;
}

Result<void> check(const protocol::Hello& hello) {
    model::Machine xeon;
    xeon.name = "xeon";
    return check_hello(hello, xeon);
}

} // namespace

TEST_CASE("a hello that is as it must be is taken") {
    CHECK(check(good_hello()));
    protocol::Hello bare = good_hello();
    bare.profile = bare.labels = Json::object();
    bare.metrics_url.clear();
    bare.spool.clear();
    CHECK(check(bare));
}

TEST_CASE("junk in a hello is refused with its place, whatever it is") {
    using Spoil = void (*)(protocol::Hello&);
    const std::pair<Spoil, const char*> rows[] = {
        {[](auto& h) { h.version_min = h.version_max = 2; }, "version"},
        {[](auto& h) { h.start_id.clear(); }, "start_id"},
        {[](auto& h) { h.start_id[3] = 'G'; }, "start_id"},
        {[](auto& h) { h.spool[0].start_id = "x"; }, "epoch 2"},
        {[](auto& h) { h.metrics_url = "no url"; }, "metrics_url"},
        {[](auto& h) { h.profile = Json::array(); }, "the profile"},
        {[](auto& h) { h.profile["rolls"] = 1; }, "rolls"},
        {[](auto& h) { h.profile["roles"] = "0-3"; }, "roles"},
        {[](auto& h) { h.profile["roles"]["app"] = true; }, "roles.app"},
        {[](auto& h) { h.profile["roles"]["app"] = "3-1"; }, "roles.app"},
        {[](auto& h) { h.profile["roles"]["app"] = "0-99999999"; }, "roles.app"},
        {[](auto& h) { h.profile["roles"]["a b"] = "0"; }, "roles.a b"},
        {[](auto& h) { h.profile["roles"][std::string("a\0", 2)] = "0"; }, "role name"},
        {[](auto& h) {
             h.profile["memory"] = {{"nobody", "0"}};
         },
         "memory.nobody"},
        {[](auto& h) {
             h.profile["share"] = {{"app", 7}};
         },
         "share"},
        {[](auto& h) {
             h.profile["limits"] = {{"processes", -1}};
         },
         "limits.processes"},
        {[](auto& h) {
             h.profile["allow"] = {{"settings", "all"}};
         },
         "allow.settings"},
        {[](auto& h) { h.profile["roles"]["app"] = std::string(70'000, '0'); }, "65536"},
        {[](auto& h) {
             h.labels["cpu"] = {{"a", 1}};
         },
         "label 'cpu'"},
        {[](auto& h) { h.labels["x"] = std::string(20'000, 'x'); }, "labels"},
        {[](auto& h) { h.environment["raw"] = std::string(3 << 20, 'x'); }, "environment"},
    };
    for (const auto& [spoil, word] : rows) {
        protocol::Hello hello = good_hello();
        spoil(hello);
        CAPTURE(word);
        const auto checked = check(hello);
        REQUIRE_FALSE(checked);
        CHECK(checked.error().kind == ErrorKind::bad_input);
        CHECK_MESSAGE(checked.error().text().find(word) != std::string::npos, checked.error().text());
    }
    protocol::Hello other = good_hello();
    other.machine = "ryzen";
    CHECK(check(other).error().kind == ErrorKind::forbidden);
}
