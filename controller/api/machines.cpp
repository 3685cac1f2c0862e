#include "controller/db/machines.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/api/token_cache.hpp"
#include "controller/db/queue.hpp"
#include "controller/queue/waiting.hpp"

namespace perfrig::api {

namespace {

// What only the event loop knows, taken along to the worker thread.
using Doings = std::map<model::Id, std::string>;

Json with_link(const model::Machine& machine, const Doings& doings) {
    Json json = to_json(machine);
    const auto at = doings.find(machine.id);
    json["connected"] = at != doings.end();
    json["doing"] = at != doings.end() ? at->second : "";
    return json;
}

Result<Json> document(db::Connection& c, const std::string& name, const Doings& doings) {
    PERFRIG_TRY(const auto machine, db::machines::find(c, name));
    Json json = with_link(machine, doings);
    json["profile"] = machine.profile;
    json["lease"] = nullptr;
    json["environment"] = nullptr;
    PERFRIG_TRY(const auto lease, db::queue::lease_of(c, machine.id));
    if (lease) {
        PERFRIG_TRY(const auto block, db::queue::block(c, lease->block_id));
        json["lease"] = {{"block", lease->block_id},
                         {"submission", block.submission_id},
                         {"token", lease->token},
                         {"state", model::to_string(lease->state)},
                         {"renew_by", time_json(lease->renew_by_utc_ns)}};
    }
    if (machine.environment_id != 0) {
        PERFRIG_TRY(const auto environment, db::machines::environment(c, machine.environment_id));
        json["environment"] = {{"fingerprint", environment.fingerprint},
                               {"taken_at", time_json(environment.taken_utc_ns)},
                               {"boot_id", environment.boot_id},
                               {"facts", environment.facts}};
    }
    return json;
}

Result<std::string> reason_of(const Request& request) {
    PERFRIG_TRY(const auto body, json_body(request));
    JsonReader in(body, "the request body");
    auto reason = in.string("reason");
    if (in.has("reason") && (reason.empty() || reason.size() > 500)) in.fault("reason must have 1 to 500 bytes");
    PERFRIG_CHECK(in.finish());
    return reason;
}

// A person's word frees what a silent agent holds: the lease is revoked, whatever comes with its token is fenced off,
// and the block waits again. Without its agent the machine itself stays unreachable.
Result<void> release(db::Connection& c, const Request& request, bool connected) {
    const auto& name = request.parameters.at("machine");
    PERFRIG_TRY(const auto machine, db::machines::find(c, name));
    const auto state = machine.state;
    const bool silent = state == model::MachineState::unreachable || state == model::MachineState::quarantined;
    if (silent) {
        PERFRIG_CHECK(db::queue::revoke(c, machine.id, "released by a person", actor(request)));
        if (state == model::MachineState::unreachable && !connected) return {};
    }
    PERFRIG_CHECK(db::machines::release(c, name, actor(request)));
    return {};
}

template <class Change> Async change_machine(Services& services, Shared request, Change change) {
    auto job = [&pool = services.pool, request, change, doings = services.agents.registry.doings()] {
        return pool.run_in_transaction([&](db::Connection& c) -> Result<HttpResponse> {
            PERFRIG_CHECK(change(c, *request));
            PERFRIG_TRY(const auto json, document(c, request->parameters.at("machine"), doings));
            return json_answer(json);
        });
    };
    auto response = co_await services.blocking.run(job);
    if (!response) co_return answer_for(response.error(), *request);
    services.agents.scheduler.nudge();
    services.changed.notify_all();
    co_return std::move(*response);
}

} // namespace

Async list_machines(Services& services, Shared request) {
    auto work = [doings = services.agents.registry.doings()](db::Connection& c) -> Result<HttpResponse> {
        PERFRIG_TRY(const auto machines, db::machines::list(c));
        Json items = Json::array();
        for (const auto& machine : machines) items.push_back(with_link(machine, doings));
        return json_answer({{"items", items}});
    };
    auto response = co_await in_store(services, work);
    co_return response ? std::move(*response) : answer_for(response.error(), *request);
}

Async get_machine(Services& services, Shared request) {
    auto work = [request, doings = services.agents.registry.doings()](db::Connection& c) -> Result<HttpResponse> {
        PERFRIG_TRY(const auto json, document(c, request->parameters.at("machine"), doings));
        return json_answer(json);
    };
    auto response = co_await in_store(services, work);
    co_return response ? std::move(*response) : answer_for(response.error(), *request);
}

Async hold_machine(Services& services, Shared request) {
    const auto change = [](db::Connection& c, const Request& asked) -> Result<void> {
        PERFRIG_TRY(const auto reason, reason_of(asked));
        PERFRIG_CHECK(db::machines::hold(c, asked.parameters.at("machine"), reason, actor(asked)));
        return {};
    };
    return change_machine(services, std::move(request), change);
}

Async forget_machine(Services& services, Shared request) {
    auto work = [request, doings = services.agents.registry.doings()](db::Connection& c) -> Result<HttpResponse> {
        const auto& name = request->parameters.at("machine");
        PERFRIG_TRY(const auto machine, db::machines::find(c, name));
        if (doings.contains(machine.id))
            return fail(ErrorKind::conflict, "forget the machine", name, "its agent is connected",
                        "stop its agent first");
        PERFRIG_CHECK(db::machines::forget(c, name, queue::silent_after, actor(*request)));
        HttpResponse response;
        response.status = 204;
        return response;
    };
    auto response = co_await in_store(services, work);
    if (!response) co_return answer_for(response.error(), *request);
    services.tokens.forget_machine(request->parameters.at("machine"));
    services.changed.notify_all();
    co_return std::move(*response);
}

Async release_machine(Services& services, Shared request) {
    const auto connected = services.agents.registry.doings();
    const auto change = [connected](db::Connection& c, const Request& asked) -> Result<void> {
        PERFRIG_TRY(const auto machine, db::machines::find(c, asked.parameters.at("machine")));
        return release(c, asked, connected.contains(machine.id));
    };
    return change_machine(services, std::move(request), change);
}

} // namespace perfrig::api
