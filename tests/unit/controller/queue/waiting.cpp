// Why nothing starts: every reason there is, in a table.
#include "controller/queue/waiting.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace perfrig::queue;
using model::MachineState;

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t now_ns = 1'000'000 * second_ns; // 1970-01-12T13:46:40Z

model::MachineInSight machine(MachineState state, const std::string& reason = "") {
    model::MachineInSight out;
    out.name = "xeon";
    out.suits = true;
    out.state = state;
    out.reason = reason;
    out.last_seen_utc_ns = now_ns - second_ns;
    return out;
}

model::WaitingView waits(std::vector<model::MachineInSight> machines, std::int64_t ahead = 0) {
    model::WaitingView out;
    out.submission = 7;
    out.pending = true;
    out.blocks_ahead = ahead;
    out.machines = std::move(machines);
    return out;
}

std::string text_of(const model::WaitingView& view) {
    const auto waiting = why_waiting(view, now_ns);
    return waiting ? waiting->text : "";
}

model::MachineInSight changed(model::MachineInSight machine, void (*change)(model::MachineInSight&)) {
    change(machine);
    return machine;
}

} // namespace

TEST_CASE("whatever state a machine is in, a submission that waits for it says so") {
    using M = model::MachineInSight;
    const struct {
        M machine;
        const char* why;
        const char* text;
    } cases[] = {
        {machine(MachineState::enrolling), "never_joined", "enrolled, but its agent has never connected: start it"},
        {changed(machine(MachineState::held, "firmware"), [](M& m) { m.held_by = "user 1a2b"; }), "held",
         "held by user 1a2b: firmware"},
        {changed(machine(MachineState::draining, "firmware"),
                 [](M& m) {
                     m.held_by = "user 1a2b";
                     m.busy_with = 3;
                 }),
         "draining", "held by user 1a2b: firmware; and busy with submission 3"},
        {changed(machine(MachineState::leased),
                 [](M& m) {
                     m.busy_with = 3;
                     m.busy_seconds_left = 80.5;
                 }),
         "busy", "busy with submission 3 until about 1970-01-12T13:48:00Z"},
        {changed(machine(MachineState::leased), [](M& m) { m.busy_with = 3; }), "busy", "busy with submission 3"},
        {machine(MachineState::quarantined, "two runs in a row were voided"), "quarantined",
         "quarantined: two runs in a row were voided"},
        {machine(MachineState::restoring), "restoring", "being put back as it was"},
        {changed(machine(MachineState::unreachable), [](M& m) { m.last_seen_utc_ns = now_ns - 100 * second_ns; }),
         "silent", "silent since 1970-01-12T13:45:00Z: its agent sends nothing"},
        {changed(machine(MachineState::unreachable),
                 [](M& m) {
                     m.last_seen_utc_ns = now_ns - 100 * second_ns;
                     m.previous_state = MachineState::held;
                 }),
         "silent", "silent since 1970-01-12T13:45:00Z: its agent sends nothing; and it is held"},
        // Nobody has called it unreachable yet: a controller that has just started gives agents their time.
        {changed(machine(MachineState::idle), [](M& m) { m.last_seen_utc_ns = now_ns - 16 * second_ns; }), "silent",
         "silent since 1970-01-12T13:46:24Z: its agent sends nothing"},
        {machine(MachineState::idle), "free", "free"},
        {changed(machine(MachineState::held),
                 [](M& m) {
                     m.lacking_roles = {"db", "load"};
                 }),
         "held", "held (and its profile lacks what the experiment names: db, load)"},
    };
    for (const auto& one : cases) {
        const auto waiting = why_waiting(waits({one.machine}), now_ns);
        REQUIRE(waiting);
        REQUIRE(waiting->machines.size() == 1);
        CHECK(waiting->machines[0].machine == "xeon");
        CHECK(waiting->machines[0].why == one.why);
        CHECK(waiting->machines[0].text == one.text);
        CHECK(waiting->text == "xeon is " + std::string(one.text) + "; it is the next in the queue");
    }
}

TEST_CASE("where no machine suits, what is asked for is said") {
    auto named = waits({});
    named.machine_name = "epyc";
    CHECK(text_of(named).starts_with("there is no machine named epyc"));
    CHECK(text_of(waits({})).starts_with("no machine has joined yet"));
    auto stranger = machine(MachineState::idle);
    stranger.suits = false;
    auto labelled = waits({stranger});
    labelled.machine_labels = {{"cpu", "zen4"}, {"lab", "1"}};
    CHECK(text_of(labelled).starts_with("no machine has the labels cpu=zen4, lab=1"));
}

TEST_CASE("the place in the queue is said") {
    CHECK(text_of(waits({machine(MachineState::leased)}, 1)).ends_with("; 1 block is ahead of it in the queue"));
    const auto waiting = why_waiting(waits({machine(MachineState::leased)}, 12), now_ns);
    CHECK(waiting->text.ends_with("; 12 blocks are ahead of it in the queue"));
    CHECK(waiting->blocks_ahead == 12);
}

TEST_CASE("of many machines some are named and the rest are counted") {
    const auto waiting = why_waiting(waits(std::vector<model::MachineInSight>(8, machine(MachineState::held))), now_ns);
    CHECK(waiting->machines.size() == 8);
    CHECK(waiting->text == "xeon is held; xeon is held; xeon is held; xeon is held; xeon is held; and 3 more; it is "
                           "the next in the queue");
}

TEST_CASE("what is under way does not wait, but a block that a silent machine has in hand does") {
    auto own = machine(MachineState::leased);
    own.busy_with = 7;
    CHECK(!why_waiting(waits({own, machine(MachineState::held)}), now_ns));
    own.last_seen_utc_ns = now_ns - 100 * second_ns;
    const auto waiting = why_waiting(waits({own, machine(MachineState::held)}), now_ns);
    REQUIRE(waiting);
    CHECK(waiting->text == "its block is on xeon, which is silent since 1970-01-12T13:45:00Z: its agent sends nothing "
                           "(gone for good? perfrig machines release xeon)");
    REQUIRE(waiting->machines.size() == 1);
    CHECK(waiting->machines[0].why == "silent");
    auto done = waits({machine(MachineState::idle)});
    done.pending = false;
    CHECK(!why_waiting(done, now_ns));
}
