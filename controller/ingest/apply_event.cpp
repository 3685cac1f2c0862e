#include "controller/ingest/apply_event.hpp"

#include "controller/db/artifacts.hpp"
#include "controller/db/events.hpp"
#include "controller/db/run_facts.hpp"
#include "controller/db/runs.hpp"

#include <limits>

namespace perfrig::ingest {

namespace {

struct Apply {
    db::Connection& c;
    model::Id machine;
    const protocol::RunEvent& event;
    const std::string& actor;

    template <class T> static Result<Applied> stored(Result<T> done, bool evidence) {
        if (!done) return std::move(done).error();
        return Applied{false, evidence};
    }
    static Result<Applied> evidence(Result<void> done) { return stored(std::move(done), true); }
    template <class T> static Result<Applied> aside(Result<T> done) {
        return stored(std::move(done), false);
    } // nothing is judged by it

    Result<Applied> operator()(const protocol::StateChanged& body) const {
        PERFRIG_TRY(const model::RunState state, model::parse_run_state(body.state));
        if (state < model::RunState::preparing)
            return fail(ErrorKind::bad_input, "change the state of run", std::to_string(event.run),
                        "an agent can't make it " + body.state);
        PERFRIG_TRY(const auto moved,
                    db::runs::change_state(c, event.run, state, body.reason, Milliseconds(body.deadline_ms), actor));
        if (moved == db::runs::Moved::already_ended) // said, not acted on: a controller ended it first
            PERFRIG_CHECK(db::events::add(c, actor, "run/" + std::to_string(event.run), "late_state",
                                          {{"state", body.state}, {"reason", body.reason}}));
        return Applied{moved == db::runs::Moved::yes && is_end(state), false};
    }
    Result<Applied> operator()(const protocol::PhaseStarted& body) const {
        model::Phase phase;
        phase.machine_id = machine;
        phase.ordinal = body.ordinal;
        phase.name = body.name;
        phase.start_ns = body.start_ns;
        phase.utc_anchor_ns = body.anchor.utc_ns;
        phase.anchor_ns = body.anchor.monotonic_ns;
        phase.anchor_error_ns = body.anchor.error_ns;
        return evidence(db::facts::start_phase(c, event.run, phase));
    }
    Result<Applied> operator()(const protocol::PhaseEnded& body) const {
        return evidence(db::facts::end_phase(c, event.run, machine, body.ordinal, body.end_ns));
    }
    Result<Applied> operator()(const protocol::ProcessStarted& body) const {
        model::Process process;
        process.machine_id = machine;
        process.ordinal = body.ordinal;
        process.role = body.role;
        process.name = body.name;
        process.phase = body.phase;
        process.pid = body.pid;
        process.granted_cpus = body.granted_cpus;
        process.cgroup = body.cgroup;
        process.speculation = body.speculation;
        process.started_ns = body.started_ns;
        return evidence(db::facts::start_process(c, event.run, process));
    }
    Result<Applied> operator()(const protocol::ProcessObserved& body) const {
        return evidence(
            db::facts::observe_process(c, event.run, machine, body.ordinal, body.observed_cpus, body.observed_nodes));
    }
    Result<Applied> operator()(const protocol::ProcessEnded& body) const {
        return evidence(db::facts::end_process(c, event.run, machine, body.ordinal, body.ended_ns, body.exit));
    }
    Result<Applied> operator()(const protocol::Found& body) const {
        model::Finding finding;
        finding.run_id = event.run;
        finding.machine_id = machine;
        finding.check_name = body.check_name;
        PERFRIG_TRY(finding.severity, model::parse_severity(body.severity));
        finding.subject = body.subject;
        finding.message = body.message;
        finding.evidence = body.evidence;
        return evidence(db::facts::add_findings(c, {&finding, 1}));
    }
    Result<Applied> operator()(const protocol::ArtifactOffered& body) const {
        return aside(db::artifacts::offer(c, event.run, machine, body.name, body.sha256, body.size));
    }
    Result<Applied> operator()(const protocol::EnvironmentTaken& body) const {
        return aside(db::facts::put_environment(c, event.run, machine, body));
    }
    Result<Applied> operator()(const protocol::RolesGranted& body) const {
        return evidence(db::facts::put_roles(c, event.run, machine, body.roles));
    }
    template <class Other> Result<Applied> operator()(const Other&) const {
        return fail(ErrorKind::internal, "store an event of run", std::to_string(event.run), "it is stored in bulk");
    }
};

} // namespace

Result<Applied> apply_event(db::Connection& c, model::Id machine, const protocol::RunEvent& event,
                            const std::string& actor) {
    return std::visit(Apply{c, machine, event, actor}, event.body);
}

Result<model::SeriesInfo> series_of(model::Id machine, const protocol::SeriesDeclared& declared) {
    if (declared.id > std::uint32_t(std::numeric_limits<int>::max()))
        return fail(ErrorKind::bad_input, "declare series", std::to_string(declared.id), "the number is too large");
    if (declared.kind != "counter" && declared.kind != "gauge")
        return fail(ErrorKind::bad_input, "declare series", declared.name,
                    "it is neither counter nor gauge but '" + declared.kind + "'");
    return model::SeriesInfo{machine,       static_cast<int>(declared.id), declared.name,
                             declared.unit, declared.kind == "counter",    declared.labels};
}

model::Metric metric_of(const protocol::MetricRead& read) {
    model::Metric out;
    out.name = read.name;
    out.unit = read.unit;
    out.labels = read.labels;
    out.value = read.value;
    out.window_start_ns = read.window_start_ns;
    out.window_end_ns = read.window_end_ns;
    out.source = read.source;
    out.status = read.status;
    return out;
}

} // namespace perfrig::ingest
