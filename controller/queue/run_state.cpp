#include "controller/queue/run_state.hpp"

namespace perfrig::queue {

using model::RunState;

OverdueStep decide_overdue(Milliseconds late, std::optional<Milliseconds> asked_to_cancel_for) {
    if (late < deadline_margin) return OverdueStep::wait;
    if (!asked_to_cancel_for) return OverdueStep::cancel_at_agent;
    return *asked_to_cancel_for < cancel_grace ? OverdueStep::wait : OverdueStep::fail;
}

bool retry_is_due(RunState state, int attempt, bool cancel_requested) {
    return state == RunState::interrupted && attempt < most_attempts && !cancel_requested;
}

} // namespace perfrig::queue
