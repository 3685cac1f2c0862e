// The router's table: every method, path and kind of token, as data. schemas/openapi.yaml says the same to the outside
// and a test holds the two equal. Which function answers is the business of handlers.hpp, by the operation's name.
#pragma once

#include "controller/api/access.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::api {

struct Route {
    std::string_view operation; // OpenAPI's operationId
    std::string_view method;
    std::string_view path; // "/api/v1/runs/{run}/metrics"
    TokenKinds who;        // empty: open
    bool single = false;   // a single resource: its GET carries an ETag
};

std::span<const Route> routes();

struct RouteMatch {
    PathFit fit = PathFit::no_such_path;
    const Route* route = nullptr;                  // where it fits
    std::map<std::string, std::string> parameters; // "run" -> "12", decoded
    std::string allow;                             // for a wrong method: "GET, HEAD, POST, OPTIONS"
};

// `segments` are the path's parts, decoded one by one (HttpRequest::segments). HEAD is served wherever GET is, by GET's
// route: the server sends no body.
RouteMatch match_route(std::string_view method, const std::vector<std::string>& segments);

bool below_agent_path(const std::vector<std::string>& segments);

} // namespace perfrig::api
