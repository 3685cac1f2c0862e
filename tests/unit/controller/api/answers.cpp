// What all answers share: problem documents, ETags, strict parameters.
#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/api/router.hpp"
#include "tests/support/doctest.hpp"

#include <set>

using namespace perfrig;
using namespace perfrig::api;

namespace {

Request asked(std::map<std::string, std::string> query, std::string body = {}, std::string content_type = {}) {
    Request request;
    request.http.query = std::move(query);
    request.http.body = std::move(body);
    if (!content_type.empty()) request.http.headers.set("Content-Type", content_type);
    return request;
}

} // namespace

TEST_CASE("every route of the table has its handler, and no handler is without a route") {
    std::set<std::string_view> operations;
    for (const auto& route : routes()) {
        operations.insert(route.operation);
        CHECK_MESSAGE(handlers().contains(route.operation), route.operation);
    }
    for (const auto& [name, handler] : handlers()) CHECK_MESSAGE(operations.contains(name), name);
}

TEST_CASE("a problem has type, title, status and detail, and a refused definition all of its faults") {
    const Fault fault{12, 5, "tools.wrk", "unknown key 'conections'", "did you mean 'connections'?"};
    const auto answer = faults_answer("the definition has 1 fault", {fault});
    CHECK(answer.status == 422);
    CHECK(answer.content_type.starts_with("application/problem+json"));
    const auto json = Json::parse(answer.body);
    CHECK(json.at("type") == "about:blank");
    CHECK(json.at("title").get<std::string>().starts_with("Unprocessable"));
    CHECK(json.at("status") == 422);
    CHECK(json.at("detail") == "the definition has 1 fault");
    REQUIRE(json.at("faults").size() == 1);
    CHECK(json["faults"][0].at("line") == 12);
    CHECK(json["faults"][0].at("column") == 5);
    CHECK(json["faults"][0].at("message") == "unknown key 'conections'");
}

TEST_CASE("what failed inside is not explained to the asker") {
    const auto error = fail(ErrorKind::internal, "run", "select secret from t", "syntax error");
    const auto answer = answer_for(error, asked({}));
    CHECK(answer.status == 500);
    CHECK(answer.body.find("select") == std::string::npos);
    const auto gone = answer_for(fail(ErrorKind::unavailable, "reach", "PostgreSQL", "connection refused"), asked({}));
    CHECK(gone.status == 503);
    CHECK(gone.headers.has("Retry-After"));
}

TEST_CASE("an answer that the asker has is not sent again") {
    HttpHeaders headers;
    const auto first = with_etag(json_response(200, "{\"a\":1}"), headers);
    const auto etag = first.headers.find("ETag").value();
    headers.set("If-None-Match", "\"other\", W/" + etag);
    const auto again = with_etag(json_response(200, "{\"a\":1}"), headers);
    CHECK(again.status == 304);
    CHECK(again.body.empty());
    CHECK(again.headers.find("ETag") == etag);
    const auto changed = with_etag(json_response(200, "{\"a\":2}"), headers);
    CHECK(changed.status == 200);
    CHECK(changed.headers.find("ETag") != etag);
    CHECK(!with_etag(json_response(404, "{}"), headers).headers.has("ETag"));
}

TEST_CASE("parameters are read strictly, and a misspelt one is refused with the nearest") {
    CHECK(query_page(asked({})).value().limit == 50);
    CHECK(query_page(asked({{"limit", "7"}, {"after", "12"}})).value().below == 12);
    for (const char* bad : {"", "0", "1001", "-1", "7x", "1e2", "99999999999999999999"})
        CHECK_MESSAGE(query_page(asked({{"limit", bad}})).error().kind == ErrorKind::bad_input, bad);
    const auto unknown = only_query(asked({{"stat", "queued"}}), {"limit", "state"});
    REQUIRE(!unknown);
    CHECK(unknown.error().remedy == "did you mean state?");
    auto request = asked({});
    request.parameters["run"] = "1e9";
    CHECK(path_id(request, "run").error().kind == ErrorKind::not_found);
}

TEST_CASE("a submission's document shows its counts, and either when it will end or what it waits for") {
    model::Submission submission;
    submission.state = model::SubmissionState::running;
    submission.plan = {{"expected_seconds", 40.0}};
    SubmissionParts parts;
    parts.counts.by_state = {
        {model::RunState::completed, 2}, {model::RunState::assigned, 1}, {model::RunState::measuring, 1}};
    parts.counts.by_verdict = {{model::Verdict::trusted, 2}};
    parts.current_runs.resize(2);
    parts.current_runs[0].id = 5;
    auto json = to_json(submission, parts, 0);
    CHECK(json.at("run_count") == 4);
    CHECK(json.at("run_counts") == Json{{"completed", 2}, {"assigned", 1}, {"measuring", 1}});
    CHECK(json.at("verdict_counts") == Json{{"trusted", 2}});
    REQUIRE(json.at("current_runs").size() == 2);
    CHECK(json["current_runs"][0].at("id") == 5);
    CHECK(json.at("expected_end") == "1970-01-01T00:00:20.000000Z");
    CHECK(json.at("waiting").is_null());
    parts.waiting = queue::Waiting{"xeon is held", 3, {{"xeon", "held", "held"}}};
    json = to_json(submission, parts, 0);
    CHECK(json.at("expected_end").is_null());
    CHECK(json.at("waiting").at("text") == "xeon is held");
    CHECK(json["waiting"].at("blocks_ahead") == 3);
    CHECK(json["waiting"].at("machines").at(0) == Json{{"machine", "xeon"}, {"why", "held"}, {"text", "held"}});
}
