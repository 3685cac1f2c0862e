#include "controller/api/request.hpp"

#include "common/base/log.hpp"

#include <algorithm>
#include <charconv>

namespace perfrig::api {

namespace {

std::optional<std::int64_t> whole_number(const std::string& text) {
    std::int64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end) return std::nullopt;
    return value;
}

Error bad_parameter(const char* name, const std::string& value, std::string why) {
    return fail(ErrorKind::bad_input, "take the query's", std::string(name) + "=" + value, std::move(why));
}

} // namespace

Result<std::int64_t> path_id(const Request& request, const char* name) {
    const auto& text = request.parameters.at(name);
    const auto value = whole_number(text);
    if (!value || *value < 0)
        return fail(ErrorKind::not_found, std::string("find the ") + name, text, "it is not a number");
    return *value;
}

Result<std::int64_t> query_integer(const Request& request, const char* name, std::int64_t fallback, std::int64_t least,
                                   std::int64_t most) {
    const auto at = request.http.query.find(name);
    if (at == request.http.query.end()) return fallback;
    const auto value = whole_number(at->second);
    if (!value || *value < least || *value > most)
        return bad_parameter(name, at->second,
                             "it is no whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return *value;
}

Result<bool> query_boolean(const Request& request, const char* name, bool fallback) {
    const auto at = request.http.query.find(name);
    if (at == request.http.query.end()) return fallback;
    if (at->second == "true" || at->second == "1") return true;
    if (at->second == "false" || at->second == "0") return false;
    return bad_parameter(name, at->second, "it is neither true nor false");
}

std::optional<std::string> query_text(const Request& request, const char* name) {
    const auto at = request.http.query.find(name);
    if (at == request.http.query.end()) return std::nullopt;
    return at->second;
}

Result<db::PageRequest> query_page(const Request& request) {
    PERFRIG_TRY(const auto limit, query_integer(request, "limit", 50, 1, 1'000));
    PERFRIG_TRY(const auto after, query_integer(request, "after", 0, 0, INT64_MAX));
    return db::PageRequest{after, static_cast<int>(limit)};
}

Result<void> only_query(const Request& request, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : request.http.query) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        const std::vector<std::string> words(known.begin(), known.end());
        const auto nearest = nearest_word(key, words);
        return fail(ErrorKind::bad_input, "take the query's parameter", key, "there is none of that name here",
                    nearest.empty() ? "" : "did you mean " + nearest + "?");
    }
    return {};
}

Result<Json> json_body(const Request& request) {
    PERFRIG_TRY(auto json, parse_json(request.http.body, "the request body"));
    if (!json.is_object()) return fail(ErrorKind::bad_input, "read", "the request body", "it is no JSON object");
    return json;
}

bool has_json_body(const Request& request) {
    auto type = request.http.headers.value_or("Content-Type", "");
    std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
    return type.starts_with("application/json");
}

HttpResponse json_answer(const Json& json, int status) {
    return json_response(status, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json next_json(std::int64_t next) { return next == 0 ? Json() : Json(std::to_string(next)); }

HttpResponse problem(int status, std::string_view detail) { return problem_response(status, detail); }

HttpResponse faults_answer(std::string_view detail, const std::vector<Fault>& faults) {
    auto response = problem_response(422, detail);
    auto json = Json::parse(response.body);
    json["faults"] = faults_to_json(faults);
    response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return response;
}

HttpResponse answer_for(const Error& error, const Request& request) {
    if (error.kind == ErrorKind::internal)
        log::error(request.http.method + " " + request.http.path + ": " + error.text());
    auto response = error.kind == ErrorKind::internal ? problem(500, "the controller failed; its log says why")
                                                      : problem_response(error);
    if (response.status == 503) response.headers.set("Retry-After", "2");
    return response;
}

std::string actor(const Request& request) {
    const auto& caller = request.caller;
    const std::string kind(model::to_string(caller.kind)), token = caller.token_hash.substr(0, 8);
    return caller.label.empty() ? kind + " " + token : kind + " '" + caller.label + "' (" + token + ")";
}

} // namespace perfrig::api
