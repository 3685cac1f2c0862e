#include "common/metrics/exposition.hpp"
#include "common/net/url.hpp"
#include "controller/api/handlers.hpp"
#include "controller/api/metrics.hpp"
#include "controller/api/metrics_parts.hpp"
#include "controller/api/openapi.hpp"
#include "controller/api/request.hpp"
#include "controller/db/machines.hpp"

namespace perfrig::api {

Async health(Services& services, Shared) {
    auto work = [](db::Connection& c) -> Result<std::int64_t> {
        c.set_deadline(Deadline::in(Milliseconds{5'000}));
        PERFRIG_TRY(const auto rows, c.exec("select max(number) from schema_migration"));
        return rows.integer(0, 0);
    };
    const auto version = co_await in_store(services, work);
    Json database{{"reachable", version.has_value()}, {"schema_version", version ? Json(*version) : Json()}};
    if (!version) database["detail"] = "PostgreSQL can't be reached"; // no more: anybody may ask; the log says why
    co_return json_answer({{"status", version ? "ok" : "degraded"},
                           {"database", database},
                           {"version", services.version},
                           {"agents_connected", services.agents.registry.size()}},
                          version ? 200 : 503);
}

Async metrics(Services& services, Shared) {
    auto depth = co_await in_store(services, [](db::Connection& c) { return queue_depth(c); });
    auto families = services.metrics.collect();
    append_parts(families, services, depth ? *depth : QueueDepth{}, depth.has_value());
    co_return text_response(200, write_exposition(families), exposition_content_type);
}

Async openapi(Services&, Shared) {
    static const std::string text = openapi_document().dump();
    co_return json_response(200, text);
}

Result<HttpResponse> prometheus_targets(db::Connection& c, const Request&) {
    PERFRIG_TRY(const auto machines, db::machines::list(c));
    Json groups = Json::array();
    for (const auto& machine : machines) {
        // An unreachable one stays: its `up` is then 0, which is what an alert asks for.
        const auto url = parse_url(machine.metrics_url);
        if (machine.metrics_url.empty() || !url) continue;
        Json labels{{"machine", machine.name}};
        if (url->target != "/metrics") labels["__metrics_path__"] = url->target;
        if (url->secure()) labels["__scheme__"] = "https";
        groups.push_back({{"targets", Json::array({url->host_header()})}, {"labels", labels}});
    }
    return json_answer(groups);
}

} // namespace perfrig::api
