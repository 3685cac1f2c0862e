// One look of the scheduler, with what may go wrong around it.
#include "controller/queue/pass.hpp"

#include "common/base/hash.hpp"
#include "common/experiment/plan.hpp"
#include "tests/integration/db/scratch.hpp"

using namespace perfrig;
using namespace perfrig::test;

namespace {

constexpr const char* definition = R"yaml(perfrig: 1
name: test
tools:
  t: {tool: command, role: load, command: [echo, "1"], metrics: [{name: v, unit: s, pattern: "(1)"}]}
phases: {measure: 2s}
)yaml";

model::Machine machine_with_roles(db::Connection& c, const std::string& name) {
    const auto made = idle_machine(c, name);
    db::machines::HelloUpdate update;
    update.boot_id = "boot";
    update.epoch = 1;
    update.profile = {{"roles", {{"load", "0"}, {"monitor", "1"}}}};
    update.labels = Json::object();
    return good(db::machines::hello(c, made.id, update));
}

void queue_one(db::Connection& c) {
    model::NewSubmission wanted;
    wanted.experiment = "test";
    wanted.source = "test";
    wanted.definition = definition;
    wanted.definition_sha = sha256_hex(definition);
    wanted.blocks = {Json::object()};
    wanted.cells = {{cell_key({}), {}}};
    wanted.runs = {{0, 0, 0, 1, Json::object(), ""}};
    good(db::submissions::create(c, wanted));
}

std::vector<const protocol::PrepareBlock*> told(const queue::PassOutput& out) {
    std::vector<const protocol::PrepareBlock*> found;
    for (const auto& one : out.messages)
        if (const auto* prepare = std::get_if<protocol::PrepareBlock>(&one.message)) found.push_back(prepare);
    return found;
}

} // namespace

TEST_CASE("one agent's trouble neither keeps others waiting nor loses what was granted to them") {
    Scratch db;
    db::Pool pool(db.pool_options());
    const auto first = machine_with_roles(db.c(), "a"), last = machine_with_roles(db.c(), "z");
    queue_one(db.c());
    queue_one(db.c());
    queue::PassInput input;
    input.agents = {{first.id, "s1", 0}, {999'999, "s2", 0}, {last.id, "s3", 0}}; // nobody knows the second
    const auto out = queue::look_at_queue(pool, input, {});
    REQUIRE(out.error);
    CHECK(out.error->kind == ErrorKind::not_found);
    CHECK(out.granted == 2);
    CHECK(told(out).size() == 2);
}

TEST_CASE("a granted block that its agent does not answer is told again, but not at once") {
    Scratch db;
    db::Pool pool(db.pool_options());
    const auto machine = machine_with_roles(db.c(), "a");
    queue_one(db.c());
    queue::PassInput input;
    input.agents = {{machine.id, "s", 0}};
    REQUIRE(told(queue::look_at_queue(pool, input, {})).size() == 1); // and lost on its way
    auto next = queue::look_at_queue(pool, input, {});
    CHECK(!next.error);
    CHECK(told(next).empty());
    next.said.at(machine.id).prepared -= std::chrono::seconds(60);
    input.said = next.said;
    const auto again = queue::look_at_queue(pool, input, {});
    REQUIRE(told(again).size() == 1);
    CHECK(told(again).front()->runs.size() == 1);
    input.said = again.said;
    CHECK(told(queue::look_at_queue(pool, input, {})).empty());

    const auto lease = good(db::queue::lease_of(db.c(), machine.id));
    REQUIRE(lease);
    good(db::queue::set_state(db.c(), machine.id, lease->token, model::LeaseState::active));
    input.said.at(machine.id).prepared -= std::chrono::seconds(60);
    CHECK(told(queue::look_at_queue(pool, input, {})).empty()); // it answered
}

TEST_CASE("overdue runs of another block do not hide a block's own") {
    Scratch db;
    const Rig dead = rig(db.c(), 3, "dead"), alive = rig(db.c(), 1, "alive");
    good(db.c().exec("update run set deadline = now() - interval '1 hour'"));
    CHECK(good(db::queue::overdue_runs(db.c(), 2)).size() == 2);
    const auto own = good(db::queue::overdue_runs(db.c(), 2, alive.granted.block.id));
    REQUIRE(own.size() == 1);
    CHECK(own.front().id == alive.run());
}
