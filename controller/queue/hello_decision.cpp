#include "controller/queue/hello_decision.hpp"

namespace perfrig::queue {

using model::LeaseState;
using model::MachineState;

namespace {

LeaseStep decide_lease(const protocol::Hello& hello, const std::optional<model::Lease>& lease) {
    if (!lease) return LeaseStep::none;
    // An agent makes the highest token durable before it answers, so a lower one proves that it never heard of this
    // lease: the block that it names, if it is the same, it has from an earlier one.
    const bool heard_of_it = hello.highest_token >= lease->token;
    const bool has_it = heard_of_it && hello.open_block == lease->block_id;
    if (lease->state == LeaseState::releasing) return has_it ? LeaseStep::end_again : LeaseStep::finish;
    if (has_it) return LeaseStep::keep;
    // Only a lease that was never answered is sure to have no run under way: of any other the agent has lost its
    // memory.
    return heard_of_it || lease->state != LeaseState::granted ? LeaseStep::revoke : LeaseStep::prepare_again;
}

MachineState decide_state(const protocol::Hello& hello, const model::Machine& machine, bool leased) {
    const auto before = machine.state == MachineState::unreachable ? machine.previous_state : machine.state;
    if (before == MachineState::quarantined) return MachineState::quarantined;
    const bool wanted_back = before == MachineState::held || before == MachineState::draining;
    if (leased) return wanted_back ? MachineState::draining : MachineState::leased;
    if (hello.open_changes > 0) return MachineState::restoring;
    return wanted_back ? MachineState::held : MachineState::idle;
}

} // namespace

HelloDecision decide_hello(const protocol::Hello& hello, const model::Machine& machine,
                           const std::optional<model::Lease>& lease) {
    HelloDecision decision;
    decision.lease = decide_lease(hello, lease);
    const bool stays = decision.lease == LeaseStep::keep || decision.lease == LeaseStep::end_again ||
                       decision.lease == LeaseStep::prepare_again;
    if (decision.lease == LeaseStep::keep || decision.lease == LeaseStep::end_again)
        decision.keep_block = lease->block_id;
    decision.state = decide_state(hello, machine, stays);
    return decision;
}

std::optional<int> choose_version(const protocol::Hello& hello) {
    if (hello.version_min > protocol::version || hello.version_max < protocol::version) return std::nullopt;
    return protocol::version;
}

} // namespace perfrig::queue
