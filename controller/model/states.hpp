// The states of everything that has one, as enums, with the words that tables, API and screens use. The machines'
// and runs' state machines themselves are decided in controller/queue; the database holds the words to a check.
#pragma once

#include "common/base/result.hpp"

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

} // namespace perfrig::model
