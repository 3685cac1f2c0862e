#include "controller/db/submissions.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/waiting.hpp"
#include "controller/queue/waiting.hpp"

namespace perfrig::api {

namespace {
constexpr int most_current_runs = 100;
}

Result<Json> submission_document(db::Connection& c, model::Id id) {
    PERFRIG_TRY(const auto submission, db::submissions::brief(c, id));
    const auto now_utc_ns = SystemClock().utc_ns();
    SubmissionParts parts;
    PERFRIG_TRY(parts.counts, db::submissions::counts(c, id));
    PERFRIG_TRY(parts.blocks, db::submissions::blocks(c, id));
    PERFRIG_TRY(parts.current_runs, db::runs::current(c, id, most_current_runs));
    if (!model::is_end(submission.state)) {
        PERFRIG_TRY(const auto view, db::waiting::view(c, submission));
        parts.waiting = queue::why_waiting(view, now_utc_ns);
    }
    return to_json(submission, parts, now_utc_ns);
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
    PERFRIG_CHECK(db::submissions::brief(c, id)); // not_found rather than an empty list
    PERFRIG_TRY(const auto runs, db::runs::in_order(c, id, page.below, page.limit));
    Json items = Json::array();
    for (const auto& run : runs.items) items.push_back(to_json(run));
    return json_answer({{"items", items}, {"next", next_json(runs.more ? runs.items.back().id : 0)}});
}

} // namespace perfrig::api
