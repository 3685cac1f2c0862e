#include "controller/api/router.hpp"

#include "common/base/hash.hpp"
#include "common/base/log.hpp"
#include "controller/api/metrics.hpp"
#include "controller/api/request.hpp"
#include "controller/api/token_cache.hpp"

#include <chrono>

namespace perfrig::api {

namespace asio = boost::asio;

namespace {

using Admitted = std::variant<std::shared_ptr<const Request>, HttpResponse>;

HttpResponse refusal(int status, const RouteMatch& match, const HttpRequest& http) {
    switch (status) {
    case 401: {
        auto response = problem(401, http.bearer_token() ? "the token is unknown or revoked"
                                                         : "send a token: Authorization: Bearer TOKEN");
        response.headers.set("WWW-Authenticate", "Bearer realm=\"perfrig\"");
        return response;
    }
    case 404:
        return problem(404, "there is nothing at " + http.path +
                                (http.segments.size() > 4 ? " (a '/' that belongs to a name is written %2F)" : ""));
    case 405: {
        HttpResponse response;
        response.status = 204;
        if (http.method != "OPTIONS") response = problem(405, http.path + " takes " + match.allow);
        response.headers.set("Allow", match.allow);
        return response;
    }
    default: return problem(403, "a token of this kind is not good for this");
    }
}

// PostgreSQL's text can't hold a NUL, so none is let in: it would come out as a failure of ours, deep inside. (YAML's
// reader refuses it by itself, and says where; bytes of artifacts may hold what they like.)
bool holds_nul(const Request& request) {
    const auto& body = request.http.body;
    if (request.route->method != "POST" || body.find("\\u0000") == std::string::npos) return false;
    const auto json = parse_json(body, "the request body");
    return json && perfrig::holds_nul(*json);
}

bool matches(const std::string& if_none_match, const std::string& etag) {
    if (if_none_match == "*") return true;
    for (std::size_t at = 0; at < if_none_match.size();) {
        auto end = std::min(if_none_match.find(',', at), if_none_match.size());
        auto one = std::string_view(if_none_match).substr(at, end - at);
        while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
        while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
        if (one.starts_with("W/")) one.remove_prefix(2);
        if (one == etag) return true;
        at = end + 1;
    }
    return false;
}

} // namespace

HttpResponse with_etag(HttpResponse response, const HttpHeaders& asked) {
    if (response.status != 200) return response;
    auto etag = response.headers.find("ETag");
    if (!etag) {
        etag = '"' + sha256_hex(response.body).substr(0, 32) + '"';
        response.headers.set("ETag", *etag);
    }
    if (const auto known = asked.find("If-None-Match"); known && matches(*known, *etag)) {
        response.status = 304;
        response.body.clear();
        response.content_type.clear();
    }
    return response;
}

std::size_t Router::most_body_bytes(const std::string&, const std::string&) { return 1 << 20; }

asio::awaitable<Admitted> Router::admit(HttpRequest http) {
    auto match = match_route(http.method, http.segments);
    std::optional<Caller> caller;
    const bool open = match.fit == PathFit::fits && match.route->who.open();
    const auto token = http.bearer_token();
    if (!open && token) {
        auto found = co_await services_.tokens.find(*token);
        if (!found) {
            auto response = problem_response(found.error());
            response.headers.set("Retry-After", "2");
            co_return Admitted(std::move(response));
        }
        caller = std::move(*found);
    }
    const auto wanted = match.route ? match.route->who : TokenKinds{};
    if (const int status = decide_access(match.fit, wanted, below_agent_path(http.segments), caller); status != 0)
        co_return Admitted(refusal(status, match, http));
    auto request = std::make_shared<Request>();
    request->http = std::move(http);
    request->route = match.route;
    request->parameters = std::move(match.parameters);
    if (caller) request->caller = std::move(*caller);
    co_return Admitted(std::shared_ptr<const Request>(std::move(request)));
}

asio::awaitable<HttpResponse> Router::run(std::shared_ptr<const Request> request) {
    if (holds_nul(*request)) co_return problem(422, "a text in the request body holds a NUL character (take it out)");
    const auto& handler = handlers().find(request->route->operation)->second;
    if (const auto* async = std::get_if<AsyncHandler>(&handler)) {
        auto response = co_await (*async)(services_, request);
        co_return response;
    }
    auto job = [&pool = services_.pool, &store = std::get<StoreHandler>(handler), request] {
        return pool.run([&](db::Connection& c) { return store(c, *request); });
    };
    auto response = co_await services_.blocking.run(job);
    if (!response) co_return answer_for(response.error(), *request);
    co_return std::move(*response);
}

asio::awaitable<HttpResponse> Router::handle(HttpRequest http) {
    const auto started = std::chrono::steady_clock::now();
    const std::string method = http.method;
    std::string_view route = "none"; // what there isn't has one name, however it is spelt
    HttpResponse response;
    auto admitted = co_await admit(std::move(http));
    if (auto* refused = std::get_if<HttpResponse>(&admitted)) {
        response = std::move(*refused);
    } else {
        const auto request = std::get<std::shared_ptr<const Request>>(admitted);
        route = request->route->path;
        response = co_await run(request);
        response.known_peer = !request->caller.token_hash.empty();
        if (request->route->single && (method == "GET" || method == "HEAD"))
            response = with_etag(std::move(response), request->http.headers);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    static const std::map<std::string, int> known{{"GET", 0},    {"POST", 0}, {"PUT", 0},
                                                  {"DELETE", 0}, {"HEAD", 0}, {"OPTIONS", 0}};
    services_.metrics.count_request(known.contains(method) ? method : "other", route, response.status, took.count());
    co_return response;
}

asio::awaitable<UpgradeAnswer> Router::upgrade(HttpRequest http) {
    const auto match = match_route(http.method, http.segments);
    if (match.fit != PathFit::fits || match.route->operation != "agent_link") {
        auto response = co_await handle(std::move(http));
        co_return UpgradeAnswer(std::move(response));
    }
    const std::string path(match.route->path);
    auto admitted = co_await admit(std::move(http));
    const auto* refused = std::get_if<HttpResponse>(&admitted);
    services_.metrics.count_request("GET", path, refused ? refused->status : 101, 0);
    if (refused) co_return UpgradeAnswer(*refused);
    const auto request = std::get<std::shared_ptr<const Request>>(admitted);
    WebSocketSession session = [this, request](WebSocket socket) -> asio::awaitable<void> {
        agents::AgentIdentity agent{request->caller.machine_id, request->caller.machine, request->caller.token_hash};
        return agents::run_session(std::move(socket), std::move(agent), services_.agents);
    };
    co_return UpgradeAnswer(std::move(session));
}

} // namespace perfrig::api
