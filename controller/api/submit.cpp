#include "common/base/hash.hpp"
#include "common/experiment/plan_document.hpp"
#include "controller/api/definition.hpp"
#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/submissions.hpp"

namespace perfrig::api {

namespace {

Json boot_state_of(const PlannedBlock& block) {
    Json state = Json::object();
    for (const auto& [name, value] : block.kernel_args) state[name] = or_null(value);
    return state;
}

// The plan without its cells and runs, which have tables of their own.
Json summary_of(const Experiment& experiment, const Plan& plan) {
    Json json = plan_document(experiment, plan);
    json.erase("cells");
    json.erase("blocks");
    return json;
}

model::NewSubmission new_submission(const Request& request, const Definition& definition, const Experiment& experiment,
                                    const Plan& plan) {
    model::NewSubmission out;
    out.experiment = experiment.name;
    out.source = definition.source.empty() ? "api" : definition.source;
    out.definition = experiment.definition;
    out.definition_sha = experiment.definition_sha256;
    out.plan = summary_of(experiment, plan);
    out.idempotency_token = request.caller.token_hash;
    out.idempotency_key = request.http.headers.value_or("Idempotency-Key", "");
    // The key stands for the whole request, but for whether it was confirmed: asked again with another priority it is
    // another request, and must not be answered as if that had been taken.
    out.request_sha = sha256_hex(canonical_json({{"definition", sha256_hex(experiment.definition)},
                                                 {"priority", definition.priority},
                                                 {"source", out.source}}));
    out.priority = definition.priority;
    out.seed = static_cast<std::int64_t>(plan.seed);
    if (!experiment.machine.name.empty()) out.machine_name = experiment.machine.name;
    out.machine_labels = experiment.machine.labels;
    for (const auto& cell : plan.cells) out.cells.push_back({cell.key, cell.levels});
    for (const auto& block : plan.blocks) out.blocks.push_back(boot_state_of(block));
    for (const auto& run : plan.runs) {
        model::NewRun planned;
        planned.cell = run.cell;
        planned.block = run.block;
        planned.position = static_cast<int>(run.position - plan.blocks[run.block].first_run);
        planned.replicate = static_cast<int>(run.replicate);
        out.runs.push_back(std::move(planned));
    }
    return out;
}

// A machine that nobody knows would leave the submission waiting for ever.
Result<std::optional<HttpResponse>> refuse_unknown_machine(db::Connection& c, const Experiment& experiment) {
    if (experiment.machine.name.empty()) return std::optional<HttpResponse>();
    const auto machine = db::machines::find(c, experiment.machine.name);
    if (machine) return std::optional<HttpResponse>();
    if (machine.error().kind != ErrorKind::not_found) return machine.error();
    PERFRIG_TRY(const auto known, db::machines::list(c));
    std::vector<std::string> names;
    for (const auto& one : known) names.push_back(one.name);
    const auto near = nearest_word(experiment.machine.name, names);
    Fault fault;
    if (const auto* node = experiment.tree ? experiment.tree->find("machine") : nullptr) {
        fault.line = node->mark.line;
        fault.column = node->mark.column;
    }
    fault.path = "machine";
    fault.message = "there is no machine named '" + experiment.machine.name + "'";
    fault.remedy =
        near.empty() ? "see the machines that have joined: perfrig machines list" : "did you mean '" + near + "'?";
    return std::optional<HttpResponse>(faults_answer(fault.message, {fault}));
}

Result<HttpResponse> submit_in_store(db::Connection& c, const Request& request) {
    const auto key = request.http.headers.value_or("Idempotency-Key", "");
    if (key.size() > 200) return problem(400, "the Idempotency-Key is longer than 200 bytes");
    PERFRIG_TRY(const auto definition, read_definition(request));
    if (definition.text.size() > most_definition_bytes) return problem(413, "the definition is larger than 1 MiB");
    const auto checked = check_definition(definition);
    if (!checked.refusal.empty()) return faults_answer(checked.refusal, checked.faults);
    if (checked.plan->needs_confirmation && !definition.confirm)
        return faults_answer(
            "the experiment has " + std::to_string(checked.plan->cells.size()) +
                " cells, and 10,000 or more must be confirmed: ask again with confirm=true (perfrig: --yes)",
            {});
    PERFRIG_TRY(auto refused, refuse_unknown_machine(c, *checked.experiment));
    if (refused) return std::move(*refused);

    const auto fresh = new_submission(request, definition, *checked.experiment, *checked.plan);
    const auto created = db::submissions::create(c, fresh);
    if (!created) {
        const auto& error = created.error();
        // The same key with another body: understood, and refused.
        if (!key.empty() && (error.kind == ErrorKind::bad_input || error.kind == ErrorKind::conflict))
            return problem(422, error.text());
        return error;
    }
    PERFRIG_TRY(const auto document, submission_document(c, created->id));
    auto response = json_answer(document, created->existed ? 200 : 201);
    response.headers.set("Location", "/api/v1/submissions/" + std::to_string(created->id));
    return response;
}

} // namespace

Async submit(Services& services, Shared request) {
    auto work = [request](db::Connection& c) { return submit_in_store(c, *request); };
    auto response = co_await in_store(services, work);
    if (!response) co_return answer_for(response.error(), *request);
    services.agents.scheduler.nudge();
    services.changed.notify_all();
    co_return std::move(*response);
}

} // namespace perfrig::api
