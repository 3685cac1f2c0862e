#include "controller/db/submissions.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/runs.hpp"

#include <algorithm>

namespace perfrig::api {

Result<Json> submission_document(db::Connection& c, model::Id id) {
    PERFRIG_TRY(const auto submission, db::submissions::get(c, id));
    SubmissionParts parts;
    PERFRIG_TRY(parts.blocks, db::submissions::blocks(c, id));
    PERFRIG_TRY(parts.runs, db::runs::of_submission(c, id));
    PERFRIG_TRY(const auto cells, db::submissions::cells(c, id));
    parts.cells = cells.size();
    return to_json(submission, parts, SystemClock().utc_ns());
}

Result<HttpResponse> list_submissions(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"limit", "after", "state", "experiment"}));
    PERFRIG_TRY(const auto page, query_page(request));
    std::optional<model::SubmissionState> state;
    if (const auto word = query_text(request, "state")) {
        PERFRIG_TRY(state, model::parse_submission_state(*word));
    }
    PERFRIG_TRY(const auto found,
                db::submissions::list(c, page, state, query_text(request, "experiment").value_or("")));
    Json items = Json::array();
    for (const auto& submission : found.items) items.push_back(to_json(submission));
    return json_answer({{"items", items}, {"next", next_json(found.next)}});
}

Result<HttpResponse> get_submission(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "submission"));
    PERFRIG_TRY(const auto document, submission_document(c, id));
    return json_answer(document);
}

Async cancel_submission(Services& services, Shared request) {
    auto work = [request](db::Connection& c) -> Result<HttpResponse> {
        PERFRIG_TRY(const auto id, path_id(*request, "submission"));
        PERFRIG_CHECK(db::submissions::request_cancel(c, id, "cancelled by request", actor(*request)));
        PERFRIG_CHECK(db::submissions::finish_if_done(c, id));
        PERFRIG_TRY(const auto document, submission_document(c, id));
        return json_answer(document);
    };
    auto response = co_await in_store(services, work);
    if (!response) co_return answer_for(response.error(), *request);
    services.agents.scheduler.nudge();
    services.changed.notify_all();
    co_return std::move(*response);
}

Result<HttpResponse> list_submission_runs(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"limit", "after"}));
    PERFRIG_TRY(const auto id, path_id(request, "submission"));
    PERFRIG_TRY(const auto page, query_page(request));
    PERFRIG_CHECK(db::submissions::get(c, id)); // not_found rather than an empty list
    PERFRIG_TRY(auto runs, db::runs::of_submission(c, id));
    // In the order of the work. The cursor is the number of runs seen: retries come right behind what they retry, so a
    // page may show a run twice, but never leaves one out.
    std::sort(runs.begin(), runs.end(), [](const model::Run& a, const model::Run& b) {
        return std::tuple(a.block_id, a.position, a.attempt) < std::tuple(b.block_id, b.position, b.attempt);
    });
    Json items = Json::array();
    const auto begin = std::min<std::size_t>(static_cast<std::size_t>(page.below), runs.size());
    const auto end = std::min(begin + static_cast<std::size_t>(page.limit), runs.size());
    for (std::size_t i = begin; i < end; ++i) items.push_back(to_json(runs[i]));
    return json_answer({{"items", items}, {"next", next_json(end < runs.size() ? static_cast<std::int64_t>(end) : 0)}});
}

} // namespace perfrig::api
