// The states of everything that has one, as enums, with the words that tables, API and screens use; the database holds
// the words to a check. And the run's state machine: what may follow what, and how long a state may last. (The
// machines' is decided in controller/queue.)
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"

#include <optional>
#include <string_view>

namespace perfrig::model {

enum class MachineState { enrolling, idle, held, draining, leased, restoring, unreachable, quarantined };
enum class SubmissionState { queued, running, completed, failed, cancelled };
enum class BlockState { pending, granted, active, releasing, done, refused, cancelled };
enum class LeaseState { granted, active, silent, releasing };
enum class RunState {
    planned,
    assigned,
    preparing,
    warming,
    measuring,
    stopping,
    uploading,
    completed, // from here on: end states, which never change again
    refused,
    failed,
    cancelled,
    interrupted,
};
enum class Verdict { unreviewed, trusted, suspect, void_ };
enum class Severity { info, warning, void_ };
enum class TokenKind { user, agent, join, scrape };

std::string_view to_string(MachineState state);
std::string_view to_string(SubmissionState state);
std::string_view to_string(BlockState state);
std::string_view to_string(LeaseState state);
std::string_view to_string(RunState state);
std::string_view to_string(Verdict verdict);   // void_ is "void"
std::string_view to_string(Severity severity); // void_ is "void"
std::string_view to_string(TokenKind kind);

// bad_input for any other word.
Result<MachineState> parse_machine_state(std::string_view word);
Result<SubmissionState> parse_submission_state(std::string_view word);
Result<BlockState> parse_block_state(std::string_view word);
Result<LeaseState> parse_lease_state(std::string_view word);
Result<RunState> parse_run_state(std::string_view word);
Result<Verdict> parse_verdict(std::string_view word);
Result<Severity> parse_severity(std::string_view word);
Result<TokenKind> parse_token_kind(std::string_view word);

inline bool is_end(RunState state) { return state >= RunState::completed; }
inline bool is_end(SubmissionState state) { return state >= SubmissionState::completed; }
inline bool is_end(BlockState state) { return state >= BlockState::done; }

// The agent brings every state from preparing to completed; the controller plans, assigns, and ends what the agent
// can't end any more. An end state never changes again, so a message that comes late changes nothing.
//
//   planned -> assigned -> preparing -> warming -> measuring -> stopping -> uploading -> completed
//   any of them -> refused | failed | cancelled; once assigned also -> interrupted
//   assigned -> planned: the machine never heard of it, or lost its block before it began
//
// The agent's states only go forward, and any of them may be left out: no warm-up, nothing to measure after a failed
// start, or a record that could not be stored, which must not take the rest of the run with it.
bool may_follow(RunState from, RunState to);

// How long a run may stay in a state where the agent has not said how long itself (StateChanged::deadline_ms). None for
// states that don't belong to the agent: a planned run waits however long the queue is. An assigned run's time begins
// when it is the next of its block.
std::optional<Milliseconds> longest_stay(RunState state);

} // namespace perfrig::model
