// What agents ask by plain HTTP: enrolment, and the bytes of artifacts.
#include "common/base/hash.hpp"
#include "controller/api/handlers.hpp"
#include "controller/api/request.hpp"
#include "controller/api/token_cache.hpp"
#include "controller/db/artifacts.hpp"
#include "controller/db/events.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/tokens.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::api {

namespace {

// What the table takes, said in words.
bool is_machine_name(std::string_view name) {
    constexpr std::string_view first = "abcdefghijklmnopqrstuvwxyz0123456789";
    return !name.empty() && name.size() <= 63 && first.find(name[0]) != std::string_view::npos &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string_view::npos;
}

HttpResponse stored(const model::Artifact& artifact, int status) {
    HttpResponse response;
    response.status = status;
    response.headers.set("Artifact-Stored-Bytes", std::to_string(artifact.stored_bytes));
    response.headers.set("Artifact-Complete", artifact.complete ? "true" : "false");
    return response;
}

// The run's artifact of that name, where the run was the asking machine's own.
Result<model::Artifact> own_artifact(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_TRY(const auto run, db::runs::get(c, id));
    if (run.machine_id != request.caller.machine_id)
        return fail(ErrorKind::forbidden, "write to run", std::to_string(id), "it is another machine's");
    return db::artifacts::find(c, id, request.caller.machine_id, request.parameters.at("name"));
}

Result<HttpResponse> put_in_store(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"offset"}));
    PERFRIG_TRY(const auto offset, query_integer(request, "offset", 0, 0, INT64_MAX));
    PERFRIG_TRY(const auto artifact, own_artifact(c, request));
    if (artifact.complete) return stored(artifact, 204);
    if (request.http.body.size() > static_cast<std::size_t>(db::artifacts::most_part_bytes))
        return problem(413, "a part has at most 1 MiB");
    PERFRIG_TRY(const auto after, db::artifacts::append(c, artifact.id, offset, request.http.body));
    return stored(after, 204);
}

struct Joined {
    HttpResponse response;
    std::string machine;
};

// Whoever has a join token may bring new machines, not take the place of one: its name is free only for its own agent,
// which shows its present token, and where no token of it stands any more since a person revoked it.
Result<Joined> join_in_store(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto body, json_body(request));
    JsonReader in(body, "the request body");
    const auto name = in.string("machine");
    const auto present = in.string_or("current_token", "");
    if (in.has("machine") && !is_machine_name(name))
        in.fault("machine must have 1 to 63 lower-case letters, digits, '.', '_' or '-', from a letter or a digit");
    PERFRIG_CHECK(in.finish());
    PERFRIG_TRY(const auto machine, db::machines::enrol(c, name, Json::object()));
    // One joins at a time, and none that was forgotten since it was looked up.
    PERFRIG_TRY(const auto locked,
                c.exec("select from machine where id = $1 and forgotten_at is null for no key update", {machine.id}));
    if (locked.empty())
        return fail(ErrorKind::conflict, "join as", name, "the machine of this name was forgotten just now",
                    "try again");
    PERFRIG_TRY(const auto standing, db::tokens::hashes_of_machine(c, machine.id));
    const bool itself = std::ranges::find(standing, sha256_hex(present)) != standing.end();
    if (!standing.empty() && !itself) {
        PERFRIG_CHECK(db::events::add(c, actor(request), "machine/" + name, "join_refused"));
        return Joined{problem_response(fail(ErrorKind::conflict, "join as", name,
                                            "a machine of this name has joined, and its token stands",
                                            "join from that machine, whose present token is sent along; take another "
                                            "name; or have a person free this one by revoking its token or, once its "
                                            "agent is stopped: perfrig machines forget " +
                                                name)),
                      name};
    }
    const auto token = random_hex(32);
    PERFRIG_CHECK(db::tokens::revoke_of_machine(c, machine.id));
    PERFRIG_CHECK(db::tokens::create(c, sha256_hex(token), model::TokenKind::agent, "agent of " + name, machine.id));
    PERFRIG_CHECK(db::events::add(c, actor(request), "machine/" + name, "joined", {{"by_its_present_token", itself}}));
    auto response = json_answer({{"machine", name}, {"token", token}, {"epoch", machine.agent_epoch}}, 201);
    response.headers.set("Cache-Control", "no-store");
    return Joined{std::move(response), name};
}

} // namespace

Async agent_link(Services&, Shared) {
    auto response = problem(426, "agents upgrade to a WebSocket here");
    response.headers.set("Upgrade", "websocket");
    co_return response;
}

Async agent_join(Services& services, Shared request) {
    auto job = [&pool = services.pool, request] {
        return pool.run_in_transaction([&](db::Connection& c) { return join_in_store(c, *request); });
    };
    auto joined = co_await services.blocking.run(job);
    if (!joined) co_return answer_for(joined.error(), *request);
    if (joined->response.status == 201) { // a copy of the older token ends here
        services.tokens.forget_machine(joined->machine);
        services.agents.registry.cut_machine(joined->machine, "the machine has joined anew, and its token is another");
    }
    co_return std::move(joined->response);
}

Async put_artifact(Services& services, Shared request) {
    auto work = [request](db::Connection& c) { return put_in_store(c, *request); };
    auto response = co_await in_store(services, work);
    if (!response) co_return answer_for(response.error(), *request);
    // A block may wait for it.
    if (response->headers.value_or("Artifact-Complete", "") == "true") services.agents.scheduler.nudge();
    co_return std::move(*response);
}

Result<HttpResponse> head_artifact(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto artifact, own_artifact(c, request));
    return stored(artifact, 200);
}

} // namespace perfrig::api
