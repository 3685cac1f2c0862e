// Following a submission by long polls. Another controller on the same database may be the one that acts, so the wait
// looks at the database once a second besides being woken by what happens here.
#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/feed.hpp"
#include "controller/db/runs.hpp"

namespace perfrig::api {

namespace {

constexpr int most_events = 1'000;

std::vector<model::Id> ended_in(const std::vector<model::Event>& events) {
    constexpr std::string_view run = "run/";
    std::vector<model::Id> ids;
    for (const auto& event : events)
        if (event.what == "ended" && event.subject.starts_with(run))
            ids.push_back(std::stoll(event.subject.substr(run.size())));
    return ids;
}

struct Look {
    Json answer;
    bool news = false;
};

Result<Look> look(db::Connection& c, model::Id submission, std::int64_t after, bool answer_anyway) {
    PERFRIG_TRY(const auto events, db::feed::of_submission(c, submission, after, most_events));
    Look found;
    found.news = !events.empty();
    if (!found.news && !answer_anyway) return found;
    Json list = Json::array(), runs = Json::array();
    for (const auto& event : events) list.push_back(to_json(event));
    PERFRIG_TRY(const auto ended, db::runs::by_ids(c, ended_in(events)));
    for (const auto& run : ended) runs.push_back(to_json(run));
    PERFRIG_TRY(auto document, submission_document(c, submission));
    found.news = found.news || model::is_end(*model::parse_submission_state(document.at("state").get<std::string>()));
    found.answer = {{"events", std::move(list)},
                    {"runs", std::move(runs)},
                    {"more", events.size() == most_events},
                    {"last", events.empty() ? after : events.back().id},
                    {"submission", std::move(document)}};
    return found;
}

} // namespace

Async submission_events(Services& services, Shared request) {
    const auto known = only_query(*request, {"after", "wait"});
    if (!known) co_return answer_for(known.error(), *request);
    const auto id = path_id(*request, "submission");
    if (!id) co_return answer_for(id.error(), *request);
    const auto after = query_integer(*request, "after", 0, 0, INT64_MAX);
    if (!after) co_return answer_for(after.error(), *request);
    const auto wait = query_integer(*request, "wait", 0, 0, 25);
    if (!wait) co_return answer_for(wait.error(), *request);

    const auto deadline = Deadline::in(Milliseconds{*wait * 1'000});
    bool first = true;
    while (true) {
        // The first look finds out whether there is such a submission and whether it has ended; the last one answers.
        const bool last = deadline.passed() || services.stopping;
        auto work = [id = *id, after = *after, anyway = first || last](db::Connection& c) {
            return look(c, id, after, anyway);
        };
        auto found = co_await in_store(services, work);
        if (!found) co_return answer_for(found.error(), *request);
        if (found->news || last) co_return json_answer(found->answer);
        first = false;
        co_await services.changed.wait(deadline.earlier_of(Deadline::in(Milliseconds{1'000})));
    }
}

} // namespace perfrig::api
