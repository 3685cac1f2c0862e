#include "controller/queue/run_state.hpp"

namespace perfrig::queue {

using model::RunState;

RunOwner owner_of(RunState state) {
    if (model::is_end(state)) return RunOwner::nobody;
    return state == RunState::planned ? RunOwner::scheduler : RunOwner::agent;
}

bool may_follow(RunState from, RunState to) {
    if (model::is_end(from)) return false;
    switch (to) {
    case RunState::planned: return from == RunState::assigned;
    case RunState::assigned: return from == RunState::planned;
    // The agent's states come in order, but it may leave some out: no warm-up, nothing to measure after a failed start.
    case RunState::preparing: return from == RunState::assigned;
    case RunState::warming:
    case RunState::measuring:
    case RunState::stopping:
    case RunState::uploading: return from >= RunState::preparing && from < to;
    case RunState::completed: return from >= RunState::measuring;
    case RunState::refused:
    case RunState::failed:
    case RunState::cancelled: return true;
    case RunState::interrupted: return from != RunState::planned;
    }
    return false;
}

std::optional<Milliseconds> longest_stay(RunState state) {
    switch (state) {
    case RunState::assigned: return Milliseconds{120'000};
    case RunState::preparing: return Milliseconds{1'800'000};
    case RunState::warming:
    case RunState::measuring: return Milliseconds{14'400'000};
    case RunState::stopping: return Milliseconds{300'000};
    case RunState::uploading: return Milliseconds{1'800'000};
    default: return std::nullopt;
    }
}

OverdueStep decide_overdue(Milliseconds late, std::optional<Milliseconds> asked_to_cancel_for) {
    if (late < deadline_margin) return OverdueStep::wait;
    if (!asked_to_cancel_for) return OverdueStep::cancel_at_agent;
    return *asked_to_cancel_for < cancel_grace ? OverdueStep::wait : OverdueStep::fail;
}

bool retry_is_due(RunState state, int attempt, bool cancel_requested) {
    return state == RunState::interrupted && attempt < most_attempts && !cancel_requested;
}

} // namespace perfrig::queue
