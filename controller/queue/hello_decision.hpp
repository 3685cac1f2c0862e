// An agent says hello: what becomes of its machine, and of the lease that stands on it. Pure.
//
// A silent machine is not free. Only its agent's hello tells what it has in hand: the block that is leased (it goes
// on), nothing because it never heard of the block (it is told again), nothing although it had it (the block's open
// runs are interrupted and wait again), nothing because it has given it back (the lease ends).
#pragma once

#include "common/protocol/messages.hpp"
#include "controller/model/machine.hpp"
#include "controller/model/submission.hpp"

#include <optional>

namespace perfrig::queue {

enum class LeaseStep {
    none,          // there is no lease
    keep,          // the agent has the block: it goes on
    end_again,     // it has it, and was to end it: say so again
    prepare_again, // it never heard of it
    finish,        // it has given it back, and we missed the word
    revoke,        // it had it and has lost it
};

struct HelloDecision {
    LeaseStep lease = LeaseStep::none;
    std::int64_t keep_block = 0; // for welcome
    model::MachineState state = model::MachineState::idle;
};

HelloDecision decide_hello(const protocol::Hello& hello, const model::Machine& machine,
                           const std::optional<model::Lease>& lease);

// Whether this hello can be taken from the agent of that machine at all. forbidden: another machine's name; bad_input:
// no common version, or something in it is not what it must be (the profile, labels, addresses, ids).
Result<void> check_hello(const protocol::Hello& hello, const model::Machine& machine);

// Which version of the link both ends speak; none: there is no common one.
std::optional<int> choose_version(const protocol::Hello& hello);

} // namespace perfrig::queue
