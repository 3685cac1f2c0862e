#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/submissions.hpp"

namespace perfrig::api {

Result<HttpResponse> list_experiments(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"limit", "after"}));
    PERFRIG_TRY(const auto page, query_page(request));
    PERFRIG_TRY(const auto found, db::submissions::experiments(c, page));
    Json items = Json::array();
    for (const auto& experiment : found.items)
        items.push_back({{"name", experiment.name},
                         {"created_at", time_json(experiment.created_utc_ns)},
                         {"submission_count", experiment.submissions},
                         {"last_submission", id_or_null(experiment.last_submission)}});
    return json_answer({{"items", items}, {"next", next_json(found.next)}});
}

Result<HttpResponse> get_experiment(db::Connection& c, const Request& request) {
    const auto& name = request.parameters.at("experiment");
    PERFRIG_TRY(const auto latest, db::submissions::list(c, {0, 20}, std::nullopt, name));
    if (latest.items.empty())
        return fail(ErrorKind::not_found, "find the experiment", name, "nothing of that name was ever submitted");
    Json submissions = Json::array();
    for (const auto& submission : latest.items) submissions.push_back(to_json(submission));
    return json_answer({{"name", name}, {"submissions", submissions}});
}

} // namespace perfrig::api
