// What the controller does about runs that are late or were interrupted. Pure. (The run's state machine itself, what
// may follow what and how long a state may last, is in controller/model/states.hpp; controller/db holds runs to it.)
#pragma once

#include "common/base/clock.hpp"
#include "controller/model/states.hpp"

#include <optional>

namespace perfrig::queue {

// What a passed deadline is allowed to be late, since clocks and links are: then the run is cancelled at the agent.
constexpr Milliseconds deadline_margin{15'000};
// And what the agent has to end it before the controller calls it failed.
constexpr Milliseconds cancel_grace{30'000};

enum class OverdueStep { wait, cancel_at_agent, fail };
// `late` is how far the deadline has passed; `asked_to_cancel_for` how long ago the agent was told.
OverdueStep decide_overdue(Milliseconds late, std::optional<Milliseconds> asked_to_cancel_for);

// Only failed infrastructure is retried, never a result.
constexpr int most_attempts = 3;
bool retry_is_due(model::RunState state, int attempt, bool cancel_requested);

} // namespace perfrig::queue
