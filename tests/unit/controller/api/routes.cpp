// The router's table, the description that the outside gets, and who is let in.
#include "controller/api/routes.hpp"

#include "controller/api/openapi.hpp"
#include "tests/support/doctest.hpp"

#include <algorithm>
#include <set>

using namespace perfrig;
using namespace perfrig::api;

namespace {

std::string line(std::string_view method, std::string_view path, TokenKinds who, std::string_view operation) {
    std::string text = std::string(method) + " " + std::string(path) + " " + std::string(operation);
    for (auto kind :
         {model::TokenKind::user, model::TokenKind::agent, model::TokenKind::join, model::TokenKind::scrape})
        if (who.has(kind)) text += " " + std::string(model::to_string(kind));
    return text;
}

std::set<std::string> described() {
    std::set<std::string> lines;
    const std::map<std::string, std::string> methods{
        {"get", "GET"}, {"post", "POST"}, {"put", "PUT"}, {"delete", "DELETE"}, {"head", "HEAD"}};
    const auto document = openapi_document();
    for (const auto& [path, item] : document.at("paths").items())
        for (const auto& [name, method] : methods) {
            if (!item.contains(name)) continue;
            TokenKinds who;
            for (const auto& choice : item.at(name).at("security"))
                for (const auto& scheme : choice.items()) who = who | model::parse_token_kind(scheme.key()).value();
            lines.insert(line(method, path, who, item.at(name).at("operationId").get<std::string>()));
        }
    return lines;
}

std::optional<Caller> caller(model::TokenKind kind) {
    Caller who;
    who.kind = kind;
    return who;
}

} // namespace

TEST_CASE("the OpenAPI description and the router's table say the same") {
    std::set<std::string> table;
    for (const auto& route : routes()) table.insert(line(route.method, route.path, route.who, route.operation));
    const auto document = described();
    for (const auto& entry : table) CHECK_MESSAGE(document.contains(entry), "not in openapi.yaml: ", entry);
    for (const auto& entry : document) CHECK_MESSAGE(table.contains(entry), "not in the router's table: ", entry);
    CHECK(table.size() == routes().size());
}

TEST_CASE("every parameter in a path is described, and every reference of the description leads somewhere") {
    const auto document = openapi_document();
    const auto resolve = [&](const Json& node) -> const Json& {
        return node.contains("$ref") ? document.at(Json::json_pointer(node.at("$ref").get<std::string>().substr(1)))
                                     : node;
    };
    for (const auto& [path, item] : document.at("paths").items()) {
        std::set<std::string> named;
        if (item.contains("parameters"))
            for (const auto& parameter : item.at("parameters"))
                named.insert(resolve(parameter).at("name").get<std::string>());
        for (auto at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1))
            CHECK_MESSAGE(named.contains(path.substr(at + 1, path.find('}', at) - at - 1)), path);
    }
    const auto flat = document.flatten();
    for (const auto& [pointer, value] : flat.items())
        if (pointer.ends_with("/$ref"))
            CHECK_NOTHROW(document.at(Json::json_pointer(value.get<std::string>().substr(1))));
}

TEST_CASE("a path finds its route and its decoded parameters") {
    const auto match = match_route("GET", {"api", "v1", "experiments", "fruits/scaling"});
    REQUIRE(match.fit == PathFit::fits);
    CHECK(match.route->operation == "get_experiment");
    CHECK(match.parameters.at("experiment") == "fruits/scaling");
    const auto samples = match_route("GET", {"api", "v1", "runs", "7", "series", "xeon", "3", "samples"});
    REQUIRE(samples.fit == PathFit::fits);
    CHECK(samples.parameters == std::map<std::string, std::string>{{"run", "7"}, {"machine", "xeon"}, {"series", "3"}});
}

TEST_CASE("a known path with another method names the methods that it has") {
    const auto match = match_route("DELETE", {"api", "v1", "submissions"});
    CHECK(match.fit == PathFit::wrong_method);
    CHECK(match.allow == "POST, GET, HEAD, OPTIONS");
    CHECK(match_route("OPTIONS", {"healthz"}).allow == "GET, HEAD, OPTIONS");
    CHECK(match_route("GET", {"api", "v1"}).fit == PathFit::no_such_path);
    CHECK(match_route("GET", {}).fit == PathFit::no_such_path);
    CHECK(match_route("GET", {"api", "v1", "runs", "7", "more"}).fit == PathFit::no_such_path);
}

TEST_CASE("HEAD is served wherever GET is, by the same route, and where it has a route of its own by that") {
    for (const auto& route : routes()) {
        std::vector<std::string> segments;
        for (std::string_view rest = route.path; !rest.empty();) {
            rest.remove_prefix(1);
            const auto end = std::min(rest.find('/'), rest.size());
            segments.emplace_back(rest.substr(0, end));
            rest.remove_prefix(end);
        }
        const auto match = match_route("HEAD", segments);
        if (route.method == "GET" || route.method == "HEAD") {
            REQUIRE_MESSAGE(match.fit == PathFit::fits, route.path);
            CHECK(match.route->operation == route.operation);
            CHECK(match.parameters.size() == static_cast<std::size_t>(std::ranges::count(route.path, '{')));
        }
    }
    CHECK(match_route("HEAD", {"api", "v1", "plan"}).fit == PathFit::wrong_method);
}

TEST_CASE("without a good token every route but /healthz answers 401, and so does a path that there isn't") {
    for (const auto& route : routes()) {
        const int status = decide_access(PathFit::fits, route.who, route.path.starts_with("/agent/v1/"), std::nullopt);
        CHECK_MESSAGE(status == (route.path == "/healthz" ? 0 : 401), route.path);
    }
    CHECK(decide_access(PathFit::no_such_path, {}, false, std::nullopt) == 401);
    CHECK(decide_access(PathFit::wrong_method, {}, false, std::nullopt) == 401);
}

TEST_CASE("an agent's token is good below /agent/v1 alone") {
    for (const auto& route : routes()) {
        const bool below = route.path.starts_with("/agent/v1/");
        const int status = decide_access(PathFit::fits, route.who, below, caller(model::TokenKind::agent));
        if (route.path == "/healthz")
            CHECK(status == 0);
        else if (!below || route.operation == "agent_join")
            CHECK_MESSAGE(status == 403, route.path);
        else
            CHECK_MESSAGE(status == 0, route.path);
    }
    CHECK(decide_access(PathFit::no_such_path, {}, false, caller(model::TokenKind::agent)) == 403);
    CHECK(decide_access(PathFit::no_such_path, {}, true, caller(model::TokenKind::agent)) == 404);
}

TEST_CASE("a scrape token reads metrics and targets, a join token enrols, and neither does more") {
    std::set<std::string_view> scraped, joined;
    for (const auto& route : routes()) {
        const bool below = route.path.starts_with("/agent/v1/");
        if (decide_access(PathFit::fits, route.who, below, caller(model::TokenKind::scrape)) == 0)
            scraped.insert(route.operation);
        if (decide_access(PathFit::fits, route.who, below, caller(model::TokenKind::join)) == 0)
            joined.insert(route.operation);
    }
    CHECK(scraped == std::set<std::string_view>{"health", "metrics", "prometheus_targets"});
    CHECK(joined == std::set<std::string_view>{"health", "agent_join"});
}

TEST_CASE("a user's token reaches everything outside /agent/v1 and learns what isn't there") {
    for (const auto& route : routes()) {
        const bool below = route.path.starts_with("/agent/v1/");
        CHECK_MESSAGE(decide_access(PathFit::fits, route.who, below, caller(model::TokenKind::user)) ==
                          (below ? 403 : 0),
                      route.path);
    }
    CHECK(decide_access(PathFit::no_such_path, {}, false, caller(model::TokenKind::user)) == 404);
    CHECK(decide_access(PathFit::wrong_method, {}, false, caller(model::TokenKind::user)) == 405);
}
