#include "controller/api/routes.hpp"

#include <optional>

namespace perfrig::api {

namespace {

constexpr TokenKinds open_to_all{};
constexpr TokenKinds user = model::TokenKind::user;
constexpr TokenKinds agent = model::TokenKind::agent;
constexpr TokenKinds join = model::TokenKind::join;
constexpr TokenKinds reader = TokenKinds(model::TokenKind::user) | model::TokenKind::scrape;

constexpr Route table[] = {
    {"health", "GET", "/healthz", open_to_all},
    {"metrics", "GET", "/metrics", reader},
    {"openapi", "GET", "/api/v1/openapi.json", user, true},
    {"prometheus_targets", "GET", "/api/v1/prometheus/targets", reader},

    {"validate", "POST", "/api/v1/validate", user},
    {"plan", "POST", "/api/v1/plan", user},

    {"submit", "POST", "/api/v1/submissions", user},
    {"list_submissions", "GET", "/api/v1/submissions", user},
    {"get_submission", "GET", "/api/v1/submissions/{submission}", user, true},
    {"cancel_submission", "POST", "/api/v1/submissions/{submission}/cancel", user},
    {"list_submission_runs", "GET", "/api/v1/submissions/{submission}/runs", user},
    {"submission_results", "GET", "/api/v1/submissions/{submission}/results", user, true},
    {"submission_events", "GET", "/api/v1/submissions/{submission}/events", user},

    {"list_experiments", "GET", "/api/v1/experiments", user},
    {"get_experiment", "GET", "/api/v1/experiments/{experiment}", user, true},

    {"list_runs", "GET", "/api/v1/runs", user},
    {"get_run", "GET", "/api/v1/runs/{run}", user, true},
    {"run_metrics", "GET", "/api/v1/runs/{run}/metrics", user, true},
    {"run_series", "GET", "/api/v1/runs/{run}/series", user, true},
    {"series_samples", "GET", "/api/v1/runs/{run}/series/{machine}/{series}/samples", user, true},
    {"run_findings", "GET", "/api/v1/runs/{run}/findings", user, true},
    {"run_artifacts", "GET", "/api/v1/runs/{run}/artifacts", user, true},
    {"run_live", "GET", "/api/v1/runs/{run}/live", user},
    {"artifact_bytes", "GET", "/api/v1/artifacts/{artifact}", user, true},

    {"list_machines", "GET", "/api/v1/machines", user},
    {"get_machine", "GET", "/api/v1/machines/{machine}", user, true},
    {"forget_machine", "DELETE", "/api/v1/machines/{machine}", user},
    {"hold_machine", "POST", "/api/v1/machines/{machine}/hold", user},
    {"release_machine", "POST", "/api/v1/machines/{machine}/release", user},

    {"list_tokens", "GET", "/api/v1/tokens", user},
    {"create_token", "POST", "/api/v1/tokens", user},
    {"revoke_token", "DELETE", "/api/v1/tokens/{token}", user},

    {"agent_link", "GET", "/agent/v1/link", agent},
    {"agent_join", "POST", "/agent/v1/join", join},
    {"put_artifact", "PUT", "/agent/v1/runs/{run}/artifacts/{name}", agent},
    {"head_artifact", "HEAD", "/agent/v1/runs/{run}/artifacts/{name}", agent},
};

// The parameters of a path that fits the template.
std::optional<std::map<std::string, std::string>> fit_path(std::string_view path,
                                                           const std::vector<std::string>& segments) {
    std::map<std::string, std::string> parameters;
    std::size_t at = 0;
    while (!path.empty()) {
        path.remove_prefix(1); // the slash
        const auto end = std::min(path.find('/'), path.size());
        const auto part = path.substr(0, end);
        path.remove_prefix(end);
        if (at == segments.size()) return std::nullopt;
        if (part.front() == '{')
            parameters.emplace(part.substr(1, part.size() - 2), segments[at]);
        else if (part != segments[at])
            return std::nullopt;
        ++at;
    }
    if (at != segments.size()) return std::nullopt;
    return parameters;
}

} // namespace

std::span<const Route> routes() { return table; }

RouteMatch match_route(std::string_view method, const std::vector<std::string>& segments) {
    RouteMatch match;
    std::map<std::string, std::string> parameters_of_get;
    const Route* get = nullptr;
    for (const auto& route : table) {
        auto parameters = fit_path(route.path, segments);
        if (!parameters) continue;
        if (route.method == method) return {PathFit::fits, &route, std::move(*parameters), {}};
        match.fit = PathFit::wrong_method;
        match.allow += std::string(route.method) + ", ";
        if (route.method != "GET") continue;
        match.allow += "HEAD, ";
        get = &route;
        parameters_of_get = std::move(*parameters);
    }
    if (get && method == "HEAD") return {PathFit::fits, get, std::move(parameters_of_get), {}};
    if (match.fit == PathFit::wrong_method) match.allow += "OPTIONS";
    return match;
}

bool below_agent_path(const std::vector<std::string>& segments) {
    return segments.size() >= 2 && segments[0] == "agent" && segments[1] == "v1";
}

} // namespace perfrig::api
