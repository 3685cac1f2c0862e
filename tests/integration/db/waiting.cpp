// What the database tells of a submission that waits (why it waits is decided in controller/queue, and tested there).
#include "controller/db/waiting.hpp"

#include "tests/integration/db/scratch.hpp"

#include <algorithm>

using namespace perfrig;
using namespace perfrig::test;

namespace {
model::WaitingView view_of(db::Connection& c, model::Id submission) {
    return good(db::waiting::view(c, good(db::submissions::get(c, submission))));
}
const model::MachineInSight& machine_of(const model::WaitingView& view, const std::string& name) {
    const auto found = std::ranges::find(view.machines, name, &model::MachineInSight::name);
    REQUIRE(found != view.machines.end());
    return *found;
}
} // namespace

TEST_CASE("a waiting submission sees which machines suit it, who holds them, and with what they are busy") {
    Scratch db;
    auto busy = submission(10);
    busy.machine_name = "busy";
    busy.plan = {{"expected_seconds", 200.0}, {"run_count", 10}};
    const auto busy_id = good(db::submissions::create(db.c(), busy)).id;
    const auto busy_machine = idle_machine(db.c(), "busy", {{"lab", "1"}});
    const auto granted = good(db::queue::grant_next(db.c(), busy_machine.id, Milliseconds(15'000), Milliseconds(1)));
    REQUIRE(granted);
    good(db::runs::change_state(db.c(), granted->runs[0].id, model::RunState::measuring, "", std::nullopt, "test"));
    good(db::runs::change_state(db.c(), granted->runs[0].id, model::RunState::completed, "", std::nullopt, "test"));
    idle_machine(db.c(), "stranger");
    idle_machine(db.c(), "taken", {{"lab", "1"}});
    good(db.c().exec("update machine set profile = '{\"roles\": {\"app\": \"0\"}}' where name = 'taken'"));
    good(db::machines::hold(db.c(), "taken", "old word", "user one"));
    good(db::machines::release(db.c(), "taken", "user one"));
    good(db::machines::hold(db.c(), "taken", "firmware", "user two"));

    auto wanted = submission(1);
    wanted.machine_labels = {{"lab", "1"}};
    wanted.plan = {{"roles_needed", {"app", "load"}}};
    const auto id = good(db::submissions::create(db.c(), wanted)).id;
    const auto view = view_of(db.c(), id);
    CHECK(view.pending);
    CHECK(view.blocks_ahead == 0);
    CHECK(view.machine_labels == std::map<std::string, std::string>{{"lab", "1"}});
    CHECK(!machine_of(view, "stranger").suits);
    const auto& held = machine_of(view, "taken");
    CHECK(held.suits);
    CHECK(held.held_by == "user two");
    CHECK(held.reason == "firmware");
    CHECK(held.lacking_roles == std::vector<std::string>{"load"});
    const auto& leased = machine_of(view, "busy");
    CHECK(leased.suits);
    CHECK(leased.busy_with == busy_id);
    CHECK(leased.busy_seconds_left == doctest::Approx(180.0)); // nine of ten runs are left
    CHECK(!view_of(db.c(), busy_id).pending);
}

TEST_CASE("ahead in the queue is what comes first and could be given a machine that suits both") {
    Scratch db;
    idle_machine(db.c(), "a", {{"lab", "1"}});
    idle_machine(db.c(), "b");
    const auto add = [&](const std::string& machine, int priority, int blocks) {
        auto one = submission(1);
        one.machine_name = machine;
        one.priority = priority;
        one.blocks.assign(std::size_t(blocks), Json::object());
        return good(db::submissions::create(db.c(), one)).id;
    };
    add("a", 0, 2);
    add("b", 9, 1); // goes elsewhere
    add("a", 5, 1); // more urgent
    const auto cancelled = add("a", 9, 1);
    good(db::submissions::request_cancel(db.c(), cancelled, "no", "me"));
    const auto mine = add("a", 0, 3);
    add("a", 0, 1); // later
    CHECK(view_of(db.c(), mine).blocks_ahead == 3);
    auto forgotten = add("b", 0, 1);
    good(db::machines::forget(db.c(), "b", Milliseconds(0), "me"));
    CHECK(view_of(db.c(), forgotten).blocks_ahead == 0);
    CHECK(view_of(db.c(), forgotten).machines.size() == 1);
    CHECK(!view_of(db.c(), cancelled).pending);
}
