#include "controller/analysis/results_table.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/submissions.hpp"

#include <set>

namespace perfrig::api {

Result<HttpResponse> submission_results(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {}));
    PERFRIG_TRY(const auto id, path_id(request, "submission"));
    PERFRIG_TRY(const auto submission, db::submissions::get(c, id));
    PERFRIG_TRY(const auto cells, db::submissions::cells(c, id));
    PERFRIG_TRY(auto runs, db::runs::of_submission(c, id));
    PERFRIG_TRY(auto metrics, db::runs::metrics_of_submission(c, id));
    PERFRIG_TRY(auto findings, db::runs::findings_of_submission(c, id));

    std::vector<analysis::RunResult> results;
    std::map<model::Id, std::size_t> place;
    std::set<std::string> machines;
    for (auto& run : runs) {
        place[run.id] = results.size();
        if (!run.machine_name.empty()) machines.insert(run.machine_name);
        results.push_back({std::move(run), {}, {}});
    }
    for (auto& metric : metrics)
        if (const auto at = place.find(metric.run); at != place.end())
            results[at->second].metrics.push_back(std::move(metric.metric));
    for (auto& finding : findings)
        if (const auto at = place.find(finding.run_id); at != place.end())
            results[at->second].findings.push_back(std::move(finding));

    Json json = to_json(analysis::summarise(cells, results));
    json["submission"] = id;
    json["experiment"] = submission.experiment;
    json["state"] = model::to_string(submission.state);
    json["machines"] = machines;
    json["factors"] = submission.plan.is_object() ? submission.plan.value("factors", Json::array()) : Json::array();
    return json_answer(json);
}

} // namespace perfrig::api
