#include "controller/agents/link_commands.hpp"

#include "controller/db/machines.hpp"
#include "controller/db/queue.hpp"
#include "controller/db/tokens.hpp"

namespace perfrig::agents {

namespace {

std::string fenced(std::int64_t block, std::int64_t token) {
    return "acts on block " + std::to_string(block) + " with token " + std::to_string(token) +
           ", which is not its lease (any more)";
}

// The machine is back: it was only slow.
Result<void> no_longer_unreachable(db::Connection& c, model::Id machine, bool leased) {
    PERFRIG_TRY(const auto now, db::machines::find_by_id(c, machine));
    if (now.state != model::MachineState::unreachable) return {};
    const model::MachineState from[] = {model::MachineState::unreachable};
    auto to = now.previous_state;
    if (leased && to != model::MachineState::draining) to = model::MachineState::leased;
    if (!leased && to == model::MachineState::leased) to = model::MachineState::idle;
    PERFRIG_CHECK(db::machines::change_state(c, machine, from, to, "", "agent"));
    return {};
}

// An agent refuses a block for reasons of its own (a newer token, another block in hand), never for what the runs are:
// those it takes and refuses one by one. So the block waits again, as often as runs may be tried.
Result<Applied> refuse_block(db::Connection& c, model::Id machine, const protocol::BlockRefused& refused) {
    PERFRIG_TRY(const auto lease, db::queue::lease_of(c, machine));
    if (!lease || lease->token != refused.token) return Applied{}; // it was taken from the agent meanwhile
    if (refused.unclean) { // the next blocks would be refused like this one, until none had a try left
        PERFRIG_CHECK(db::queue::quarantine(c, machine, refused.token, refused.reason));
        return Applied{};
    }
    PERFRIG_CHECK(db::queue::revoke(c, machine, "the agent refused the block: " + refused.reason, "agent"));
    return Applied{};
}

Result<Applied> release_block(db::Connection& c, model::Id machine, const protocol::BlockReleased& released) {
    PERFRIG_TRY(const auto lease, db::queue::lease_of(c, machine));
    if (!lease || lease->token != released.token) return Applied{}; // said twice
    // The agent gives a block back by itself only where it has ended everything in it, but its word alone must not
    // lose runs that nobody made: those wait again.
    PERFRIG_TRY(const auto progress, db::queue::progress(c, lease->block_id));
    if (progress.open > 0)
        PERFRIG_CHECK(db::queue::revoke(c, machine, "the agent gave the block back before its end", "agent"));
    else
        PERFRIG_CHECK(db::queue::end(c, machine, released.token, model::BlockState::done, ""));
    return Applied{};
}

} // namespace

Result<Applied> HeartbeatTaken::apply(db::Connection& c, model::Id machine, const queue::LeaseTimes& times) const {
    PERFRIG_TRY(const auto token, db::tokens::find(c, token_hash));
    if (!token || token->machine_id != machine) return Applied{"", true};
    if (!beat) return Applied{};
    PERFRIG_CHECK(db::machines::seen(c, machine, beat->offset_ns, beat->offset_error_ns));
    if (beat->token == 0) {
        PERFRIG_CHECK(no_longer_unreachable(c, machine, false));
        return Applied{};
    }
    PERFRIG_TRY(const bool renewed, db::queue::renew(c, machine, beat->token, times.lease));
    if (!renewed) return Applied{fenced(beat->block, beat->token)};
    PERFRIG_CHECK(no_longer_unreachable(c, machine, true));
    return Applied{};
}

Result<Applied> BlockWord::apply(db::Connection& c, model::Id machine, const queue::LeaseTimes&) const {
    if (const auto* ready = std::get_if<protocol::BlockReady>(&message)) {
        PERFRIG_TRY(const bool done, db::queue::set_state(c, machine, ready->token, model::LeaseState::active));
        return Applied{done ? "" : fenced(ready->block, ready->token)};
    }
    if (const auto* refused = std::get_if<protocol::BlockRefused>(&message)) return refuse_block(c, machine, *refused);
    if (const auto* released = std::get_if<protocol::BlockReleased>(&message))
        return release_block(c, machine, *released);
    return Applied{"says hello twice on one link"};
}

} // namespace perfrig::agents
