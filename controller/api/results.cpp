#include "controller/analysis/results_table.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/submissions.hpp"

#include <set>

namespace perfrig::api {

namespace {

constexpr int most_cells = 1'000; // a page: what it takes in memory is bounded by it, not by the experiment

// The last attempt of each replicate, with what the table shows of it.
Result<std::vector<analysis::RunResult>> results_of(db::Connection& c, const std::vector<model::Cell>& cells,
                                                    std::set<std::string>& tools) {
    std::vector<model::Id> cell_ids, run_ids, good_ids;
    for (const auto& cell : cells) cell_ids.push_back(cell.id);
    PERFRIG_TRY(auto runs, db::runs::of_cells(c, cell_ids));
    std::map<std::pair<model::Id, int>, int> last;
    for (const auto& run : runs) {
        auto& attempt = last[{run.cell_id, run.replicate}];
        attempt = std::max(attempt, run.attempt);
    }
    std::vector<analysis::RunResult> results;
    std::map<model::Id, std::size_t> place;
    for (auto& run : runs) {
        if (run.attempt != last[{run.cell_id, run.replicate}]) continue;
        run_ids.push_back(run.id);
        if (run.state == model::RunState::completed && run.verdict != model::Verdict::void_) good_ids.push_back(run.id);
        place[run.id] = results.size();
        results.push_back({std::move(run), {}, {}});
    }
    PERFRIG_TRY(auto metrics, db::runs::metrics_of(c, good_ids));
    for (auto& metric : metrics) results[place.at(metric.run)].metrics.push_back(std::move(metric.metric));
    PERFRIG_TRY(tools, db::runs::tools_of(c, good_ids));
    PERFRIG_TRY(auto findings, db::runs::grave_findings_of(c, run_ids));
    for (auto& finding : findings) results[place.at(finding.run_id)].findings.push_back(std::move(finding));
    return results;
}

} // namespace

Result<HttpResponse> submission_results(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"limit", "after"}));
    PERFRIG_TRY(const auto id, path_id(request, "submission"));
    PERFRIG_TRY(const auto limit, query_integer(request, "limit", most_cells, 1, most_cells));
    PERFRIG_TRY(const auto after, query_integer(request, "after", 0, 0, INT32_MAX));
    PERFRIG_TRY(const auto submission, db::submissions::brief(c, id));
    PERFRIG_TRY(auto cells, db::submissions::cells(c, id, static_cast<int>(after), static_cast<int>(limit) + 1));
    const bool more = cells.size() > static_cast<std::size_t>(limit);
    if (more) cells.pop_back();
    std::set<std::string> tools;
    PERFRIG_TRY(const auto results, results_of(c, cells, tools));
    std::set<std::string> machines;
    for (const auto& one : results)
        if (!one.run.machine_name.empty()) machines.insert(one.run.machine_name);

    Json json = to_json(analysis::summarise(cells, results, tools));
    json["submission"] = id;
    json["experiment"] = submission.experiment;
    json["state"] = model::to_string(submission.state);
    json["machines"] = machines;
    json["factors"] = submission.plan.is_object() ? submission.plan.value("factors", Json::array()) : Json::array();
    json["next"] = next_json(more ? cells.back().ordinal : 0);
    return json_answer(json);
}

} // namespace perfrig::api
