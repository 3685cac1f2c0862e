// What happens to a run, in order, as the agent spools it: JSON objects {"event": NAME, "run": id, "time_ns": t, ...}.
// Everything about a run that is not a sample or an artifact's bytes travels as one of these.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace perfrig::protocol {

// The run entered a state of the state machine (README, "States"). An end state carries the reason and is the last
// event of its run; `interrupted` may be sent by a later epoch of the agent.
struct StateChanged {
    std::string
        state; // preparing warming measuring stopping uploading | completed refused failed cancelled interrupted
    std::string reason;           // for refused, failed, cancelled, interrupted
    std::int64_t deadline_ms = 0; // from now, by which the next state must come; 0 for end states
};
struct PhaseStarted {
    int ordinal = 0;
    std::string name; // fetch build start ready warm_up pause measure stop
    std::int64_t start_ns = 0;
    ClockAnchor anchor;
};
struct PhaseEnded {
    int ordinal = 0;
    std::int64_t end_ns = 0;
};
struct SeriesDeclared {
    std::uint32_t id = 0;
    std::string name, unit, kind; // kind: counter or gauge
    std::map<std::string, std::string> labels;
};
struct ProcessStarted {
    int ordinal = 0;
    std::string role, name, phase;
    int pid = 0;
    std::string granted_cpus, cgroup;
    Json speculation = Json::object(); // {"asked": ..., "read_back": ...}
    std::int64_t started_ns = 0;
};
// The union of what its threads were given, read back during measure.
struct ProcessObserved {
    int ordinal = 0;
    std::string observed_cpus, observed_nodes;
};
struct ProcessEnded {
    int ordinal = 0;
    std::int64_t ended_ns = 0;
    std::string exit; // "0", "exit 3", "signal 9 (Killed)"
};
struct MetricRead {
    std::string name, unit;
    std::map<std::string, std::string> labels;
    std::optional<double> value;
    std::int64_t window_start_ns = 0, window_end_ns = 0;
    std::string source = "tool";
    std::string status = "ok"; // reading status: ok suspect invalid too_short overload no_result
};
struct Found {
    std::string check_name, severity, subject, message; // severity: info, warning, void
    Json evidence = Json::object();
};
// Its bytes follow by HTTP PUT, in parts of at most 1 MiB; the agent keeps them until the controller has all.
struct ArtifactOffered {
    std::string name, sha256;
    std::int64_t size = 0;
};
// The environment around the run: "before" or "after".
struct EnvironmentTaken {
    std::string when, boot_id, fingerprint;
    Json facts = Json::object(), raw = Json::object();
};
struct RolesGranted {
    std::map<std::string, std::string> roles; // role -> cpulist
};

using RunEventBody =
    std::variant<StateChanged, PhaseStarted, PhaseEnded, SeriesDeclared, ProcessStarted, ProcessObserved, ProcessEnded,
                 MetricRead, Found, ArtifactOffered, EnvironmentTaken, RolesGranted>;

struct RunEvent {
    std::int64_t run = 0;
    std::int64_t block = 0;
    std::int64_t time_ns = 0; // the agent's CLOCK_MONOTONIC
    RunEventBody body;
};

// encode never makes what decode refuses: bytes that aren't UTF-8 and NULs become U+FFFD, texts are cut at their bound
// (names 512 bytes, texts 64 KiB), numbers that aren't finite become null. Decoding is strict: unknown or missing
// members, wrong types and values out of bounds are bad_input that names the place.
std::string encode(const RunEvent& event);
Result<RunEvent> decode_run_event(std::string_view text);
bool is_end_state(std::string_view run_state);

} // namespace perfrig::protocol
