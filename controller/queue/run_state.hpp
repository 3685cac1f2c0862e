// The run's state machine, as data: what may follow what, who must bring the next state, and how long that may take.
// Pure. The agent brings every state between preparing and completed; the controller plans, assigns, and ends what the
// agent can't end any more. An end state never changes again, so a message that comes late changes nothing.
//
//   planned -> assigned -> preparing -> warming -> measuring -> stopping -> uploading -> completed
//   (warming may be left out, and so may measuring when starting failed)
//   any of them -> refused | failed | cancelled | interrupted
//   assigned -> planned: the machine never heard of it, or lost its block before it began
#pragma once

#include "common/base/clock.hpp"
#include "controller/model/states.hpp"

#include <optional>

namespace perfrig::queue {

enum class RunOwner {
    scheduler, // planned: waits for a machine, however long the queue is
    agent,     // must bring the next state in time
    nobody,    // it has ended
};

RunOwner owner_of(model::RunState state);

bool may_follow(model::RunState from, model::RunState to);

// How long a run may stay in a state where the agent has not said how long itself (StateChanged::deadline_ms). None
// for states that don't belong to the agent. An assigned run's time begins when it is the next of its block.
std::optional<Milliseconds> longest_stay(model::RunState state);

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
