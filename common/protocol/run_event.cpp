#include "common/protocol/run_event.hpp"

#include "common/protocol/fields.hpp"
#include "common/protocol/spool_record.hpp"

namespace perfrig::protocol {

namespace {

constexpr std::int64_t most_ordinal = 100'000;

} // namespace

// Found by argument-dependent lookup from Reader and Writer, so not in the unnamed namespace.
template <class IO> static void members(IO& io, Of<IO, ClockAnchor>& a) {
    io.integer("monotonic_ns", a.monotonic_ns);
    io.integer("utc_ns", a.utc_ns);
    io.integer("error_ns", a.error_ns);
}
template <class IO> static void members(IO& io, Of<IO, StateChanged>& e) {
    io.word("state", e.state,
            {"preparing", "warming", "measuring", "stopping", "uploading", "completed", "refused", "failed",
             "cancelled", "interrupted"});
    io.text("reason", e.reason);
    io.integer("deadline_ms", e.deadline_ms);
}
template <class IO> static void members(IO& io, Of<IO, PhaseStarted>& e) {
    io.integer("ordinal", e.ordinal, 0, most_ordinal);
    io.word("name", e.name, {"fetch", "build", "start", "ready", "warm_up", "pause", "measure", "stop"});
    io.integer("start_ns", e.start_ns);
    io.part("anchor", e.anchor);
}
template <class IO> static void members(IO& io, Of<IO, PhaseEnded>& e) {
    io.integer("ordinal", e.ordinal, 0, most_ordinal);
    io.integer("end_ns", e.end_ns);
}
template <class IO> static void members(IO& io, Of<IO, SeriesDeclared>& e) {
    io.integer("id", e.id, 0, std::numeric_limits<std::int32_t>::max()); // the database's type
    io.name("name", e.name);
    io.name("unit", e.unit);
    io.word("kind", e.kind, {"counter", "gauge"});
    io.text_map("labels", e.labels);
}
template <class IO> static void members(IO& io, Of<IO, ProcessStarted>& e) {
    io.integer("ordinal", e.ordinal, 0, most_ordinal);
    io.name("role", e.role);
    io.name("name", e.name);
    io.name("phase", e.phase);
    io.integer("pid", e.pid);
    io.text("granted_cpus", e.granted_cpus);
    io.text("cgroup", e.cgroup);
    io.object("speculation", e.speculation);
    io.integer("started_ns", e.started_ns);
}
template <class IO> static void members(IO& io, Of<IO, ProcessObserved>& e) {
    io.integer("ordinal", e.ordinal, 0, most_ordinal);
    io.text("observed_cpus", e.observed_cpus);
    io.text("observed_nodes", e.observed_nodes);
}
template <class IO> static void members(IO& io, Of<IO, ProcessEnded>& e) {
    io.integer("ordinal", e.ordinal, 0, most_ordinal);
    io.integer("ended_ns", e.ended_ns);
    io.name("exit", e.exit);
}
template <class IO> static void members(IO& io, Of<IO, MetricRead>& e) {
    io.name("name", e.name);
    io.name("unit", e.unit);
    io.text_map("labels", e.labels);
    io.optional_real("value", e.value);
    io.integer("window_start_ns", e.window_start_ns);
    io.integer("window_end_ns", e.window_end_ns);
    io.word("source", e.source, {"tool", "derived", "collector"});
    io.word("status", e.status, {"ok", "suspect", "invalid", "too_short", "overload", "no_result"});
}
template <class IO> static void members(IO& io, Of<IO, Found>& e) {
    io.name("check_name", e.check_name);
    io.word("severity", e.severity, {"info", "warning", "void"});
    io.name("subject", e.subject);
    io.text("message", e.message);
    io.object("evidence", e.evidence);
}
template <class IO> static void members(IO& io, Of<IO, ArtifactOffered>& e) {
    io.name("name", e.name);
    io.name("sha256", e.sha256);
    io.integer("size", e.size);
}
template <class IO> static void members(IO& io, Of<IO, EnvironmentTaken>& e) {
    io.word("when", e.when, {"before", "after"});
    io.name("boot_id", e.boot_id);
    io.name("fingerprint", e.fingerprint);
    io.object("facts", e.facts);
    io.object("raw", e.raw);
}
template <class IO> static void members(IO& io, Of<IO, RolesGranted>& e) { io.text_map("roles", e.roles); }

namespace {

template <class E> constexpr const char* event_name = nullptr;
template <> constexpr const char* event_name<StateChanged> = "state";
template <> constexpr const char* event_name<PhaseStarted> = "phase_started";
template <> constexpr const char* event_name<PhaseEnded> = "phase_ended";
template <> constexpr const char* event_name<SeriesDeclared> = "series";
template <> constexpr const char* event_name<ProcessStarted> = "process_started";
template <> constexpr const char* event_name<ProcessObserved> = "process_observed";
template <> constexpr const char* event_name<ProcessEnded> = "process_ended";
template <> constexpr const char* event_name<MetricRead> = "metric";
template <> constexpr const char* event_name<Found> = "finding";
template <> constexpr const char* event_name<ArtifactOffered> = "artifact_offered";
template <> constexpr const char* event_name<EnvironmentTaken> = "environment";
template <> constexpr const char* event_name<RolesGranted> = "roles_granted";

template <std::size_t I = 0> Result<RunEventBody> body_from(const std::string& name, const Json& json) {
    if constexpr (I == std::variant_size_v<RunEventBody>) {
        return fail(ErrorKind::bad_input, "read", "a run event",
                    "unknown event '" + presentable(name, most_name_bytes) + "'");
    } else {
        using E = std::variant_alternative_t<I, RunEventBody>;
        if (name != event_name<E>) return body_from<I + 1>(name, json);
        Reader in(json, name, {"event", "run", "block", "time_ns"});
        E body;
        members(in, body);
        PERFRIG_CHECK(in.finish());
        return RunEventBody(std::move(body));
    }
}

} // namespace

std::string encode(const RunEvent& event) {
    return std::visit(
        [&](const auto& body) {
            Writer out(Json{{"event", event_name<std::decay_t<decltype(body)>>},
                            {"run", event.run},
                            {"block", event.block},
                            {"time_ns", event.time_ns}});
            members(out, body);
            return canonical_json(out.take());
        },
        event.body);
}

Result<RunEvent> decode_run_event(std::string_view text) {
    if (text.size() > most_record_bytes)
        return fail(ErrorKind::bad_input, "read", "a run event", "it is longer than 1 MiB");
    PERFRIG_TRY(const Json json, parse_json(text, "a run event"));
    JsonReader in(json, "a run event");
    RunEvent event;
    const std::string name = in.string("event");
    event.run = in.integer("run");
    event.block = in.integer("block");
    event.time_ns = in.integer("time_ns");
    if (event.run < 1 || event.block < 0 || event.time_ns < 0) in.fault("'run', 'block' or 'time_ns' is out of bounds");
    PERFRIG_CHECK(in.finish());
    PERFRIG_TRY(event.body, body_from(name, json));
    return event;
}

bool is_end_state(std::string_view state) {
    return state == "completed" || state == "refused" || state == "failed" || state == "cancelled" ||
           state == "interrupted";
}

} // namespace perfrig::protocol
