#include "controller/model/states.hpp"

#include "controller/model/submission.hpp"

#include <array>
#include <string>

namespace perfrig::model {

namespace {

constexpr std::array machine_words{"enrolling", "idle",      "held",        "draining",
                                   "leased",    "restoring", "unreachable", "quarantined"};
constexpr std::array submission_words{"queued", "running", "completed", "failed", "cancelled"};
constexpr std::array block_words{"pending", "granted", "active", "releasing", "done", "refused", "cancelled"};
constexpr std::array lease_words{"granted", "active", "silent", "releasing"};
constexpr std::array run_words{"planned",   "assigned",  "preparing", "warming", "measuring", "stopping",
                               "uploading", "completed", "refused",   "failed",  "cancelled", "interrupted"};
constexpr std::array verdict_words{"unreviewed", "trusted", "suspect", "void"};
constexpr std::array severity_words{"info", "warning", "void"};
constexpr std::array token_words{"user", "agent", "join", "scrape"};

template <class Enum, std::size_t n> std::string_view word_of(Enum value, const std::array<const char*, n>& words) {
    return words.at(static_cast<std::size_t>(value));
}

template <class Enum, std::size_t n>
Result<Enum> parse(std::string_view word, std::string_view what, const std::array<const char*, n>& words) {
    std::string known;
    for (std::size_t i = 0; i < n; ++i) {
        if (word == words[i]) return static_cast<Enum>(i);
        known += (i == 0 ? "" : ", ") + std::string(words[i]);
    }
    return fail(ErrorKind::bad_input, "understand the " + std::string(what), "'" + std::string(word) + "'",
                "there is no such word", "use one of: " + known);
}

} // namespace

std::string_view to_string(MachineState state) { return word_of(state, machine_words); }
std::string_view to_string(SubmissionState state) { return word_of(state, submission_words); }
std::string_view to_string(BlockState state) { return word_of(state, block_words); }
std::string_view to_string(LeaseState state) { return word_of(state, lease_words); }
std::string_view to_string(RunState state) { return word_of(state, run_words); }
std::string_view to_string(Verdict verdict) { return word_of(verdict, verdict_words); }
std::string_view to_string(Severity severity) { return word_of(severity, severity_words); }
std::string_view to_string(TokenKind kind) { return word_of(kind, token_words); }

Result<MachineState> parse_machine_state(std::string_view word) {
    return parse<MachineState>(word, "machine's state", machine_words);
}
Result<SubmissionState> parse_submission_state(std::string_view word) {
    return parse<SubmissionState>(word, "submission's state", submission_words);
}
Result<BlockState> parse_block_state(std::string_view word) {
    return parse<BlockState>(word, "block's state", block_words);
}
Result<LeaseState> parse_lease_state(std::string_view word) {
    return parse<LeaseState>(word, "lease's state", lease_words);
}
Result<RunState> parse_run_state(std::string_view word) { return parse<RunState>(word, "run's state", run_words); }
Result<Verdict> parse_verdict(std::string_view word) { return parse<Verdict>(word, "verdict", verdict_words); }
Result<Severity> parse_severity(std::string_view word) { return parse<Severity>(word, "severity", severity_words); }
Result<TokenKind> parse_token_kind(std::string_view word) {
    return parse<TokenKind>(word, "kind of token", token_words);
}

bool may_follow(RunState from, RunState to) {
    if (is_end(from)) return false;
    switch (to) {
    case RunState::planned: return from == RunState::assigned;
    case RunState::assigned: return from == RunState::planned;
    case RunState::preparing:
    case RunState::warming:
    case RunState::measuring:
    case RunState::stopping:
    case RunState::uploading: return from >= RunState::assigned && from < to;
    case RunState::completed: return from >= RunState::preparing;
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

std::int64_t RunCounts::total() const {
    std::int64_t sum = 0;
    for (const auto& [state, count] : by_state) sum += count;
    return sum;
}

std::int64_t RunCounts::ended() const {
    std::int64_t sum = 0;
    for (const auto& [state, count] : by_state)
        if (is_end(state)) sum += count;
    return sum;
}

} // namespace perfrig::model
