#include "common/experiment/plan_document.hpp"
#include "controller/api/definition.hpp"
#include "controller/api/handlers.hpp"
#include "controller/api/request.hpp"

namespace perfrig::api {

Result<HttpResponse> validate(db::Connection&, const Request& request) {
    PERFRIG_TRY(const auto definition, read_definition(request));
    const auto checked = check_definition(definition);
    if (!checked.refusal.empty()) return faults_answer(checked.refusal, checked.faults);
    return json_answer({{"valid", true},
                        {"experiment", checked.experiment->name},
                        {"cell_count", checked.plan->cells.size()},
                        {"run_count", checked.plan->runs.size()},
                        {"needs_confirmation", checked.plan->needs_confirmation}});
}

Result<HttpResponse> plan(db::Connection&, const Request& request) {
    PERFRIG_TRY(const auto definition, read_definition(request));
    const auto checked = check_definition(definition);
    if (!checked.refusal.empty()) return faults_answer(checked.refusal, checked.faults);
    return json_answer(plan_document(*checked.experiment, *checked.plan));
}

} // namespace perfrig::api
