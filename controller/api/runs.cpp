#include "controller/db/runs.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/machines.hpp"

#include <algorithm>

namespace perfrig::api {

namespace {

template <class Items, class ToJson> HttpResponse list_answer(const Items& items, ToJson to_document) {
    Json list = Json::array();
    for (const auto& item : items) list.push_back(to_document(item));
    return json_answer({{"items", list}});
}

Result<std::string> environment_of(db::Connection& c, model::Id environment) {
    if (environment == 0) return std::string();
    PERFRIG_TRY(const auto found, db::machines::environment(c, environment));
    return found.fingerprint;
}

Result<Json> machines_of(db::Connection& c, model::Id run) {
    PERFRIG_TRY(const auto machines, db::runs::machines(c, run));
    Json list = Json::array();
    for (const auto& machine : machines) {
        PERFRIG_TRY(const auto before, environment_of(c, machine.environment_before));
        PERFRIG_TRY(const auto after, environment_of(c, machine.environment_after));
        list.push_back({{"machine", machine.machine_name},
                        {"roles", machine.roles},
                        {"environment_before", text_or_null(before)},
                        {"environment_after", text_or_null(after)}});
    }
    return list;
}

} // namespace

Result<HttpResponse> list_runs(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"limit", "after", "state", "experiment", "machine", "submission"}));
    PERFRIG_TRY(const auto page, query_page(request));
    db::runs::Filter filter;
    PERFRIG_TRY(filter.submission, query_integer(request, "submission", 0, 1, INT64_MAX));
    filter.experiment = query_text(request, "experiment").value_or("");
    if (const auto name = query_text(request, "machine")) {
        PERFRIG_TRY(const auto names, db::machines::names(c));
        if (std::ranges::none_of(names, [&](const auto& known) { return known.second == *name; }))
            return fail(ErrorKind::not_found, "find the machine", *name, "none of this name ever joined",
                        "see: perfrig machines list");
        filter.machine = *name;
    }
    if (const auto word = query_text(request, "state")) {
        PERFRIG_TRY(filter.state, model::parse_run_state(*word));
    }
    PERFRIG_TRY(const auto found, db::runs::list(c, filter, page));
    Json items = Json::array();
    for (const auto& run : found.items) items.push_back(to_json(run));
    return json_answer({{"items", items}, {"next", next_json(found.next)}});
}

Result<HttpResponse> get_run(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_TRY(const auto run, db::runs::get(c, id));
    PERFRIG_TRY(const auto names, db::machines::names(c));
    PERFRIG_TRY(const auto phases, db::runs::phases(c, id));
    PERFRIG_TRY(const auto processes, db::runs::processes(c, id));
    PERFRIG_TRY(const auto findings, db::runs::findings(c, id));
    Json json = to_json(run);
    json["definition"] = run.resolved; // stored redacted
    json["definition_sha"] = run.resolved_sha;
    json["sealed_at"] = time_json(run.sealed_utc_ns);
    PERFRIG_TRY(json["machines"], machines_of(c, id));
    json["phases"] = Json::array();
    for (const auto& phase : phases) json["phases"].push_back(to_json(phase, names));
    json["processes"] = Json::array();
    for (const auto& process : processes) json["processes"].push_back(to_json(process, names));
    json["findings"] = Json::array();
    for (const auto& finding : findings) json["findings"].push_back(to_json(finding, names));
    return json_answer(json);
}

Result<HttpResponse> run_metrics(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_CHECK(db::runs::get(c, id));
    PERFRIG_TRY(const auto metrics, db::runs::metrics(c, id));
    return list_answer(metrics, [](const model::Metric& metric) { return to_json(metric); });
}

Result<HttpResponse> run_findings(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_CHECK(db::runs::get(c, id));
    PERFRIG_TRY(const auto findings, db::runs::findings(c, id));
    PERFRIG_TRY(const auto names, db::machines::names(c));
    return list_answer(findings, [&](const model::Finding& finding) { return to_json(finding, names); });
}

Result<HttpResponse> run_series(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_CHECK(db::runs::get(c, id));
    PERFRIG_TRY(const auto series, db::runs::series(c, id));
    PERFRIG_TRY(const auto names, db::machines::names(c));
    return list_answer(series, [&](const model::SeriesInfo& one) { return to_json(one, names); });
}

} // namespace perfrig::api
