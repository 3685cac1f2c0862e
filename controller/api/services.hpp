// What the API's handlers are given, and what a request is by the time they see it.
//
// Most handlers only read or change the database: a plain function that gets a connection and answers, run on a worker
// thread. The few that also talk to agents or wait are coroutines on the event loop.
#pragma once

#include "common/net/blocking_pool.hpp"
#include "common/net/http_types.hpp"
#include "common/net/task_group.hpp"
#include "controller/agents/session.hpp"
#include "controller/api/routes.hpp"
#include "controller/db/pool.hpp"

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

namespace perfrig::api {

class Metrics;
class TokenCache;

struct Services {
    db::Pool& pool;
    BlockingPool& blocking; // for requests; agents have one of their own
    agents::SessionServices& agents;
    AsyncEvent& changed; // something that followers may want to see
    Metrics& metrics;
    TokenCache& tokens;
    std::string version;
    const bool& stopping;
};

struct Request {
    HttpRequest http;
    const Route* route = nullptr;
    std::map<std::string, std::string> parameters; // of the path
    Caller caller;                                 // default where the route is open
};

using StoreHandler = std::function<Result<HttpResponse>(db::Connection&, const Request&)>;
using AsyncHandler = std::function<boost::asio::awaitable<HttpResponse>(Services&, std::shared_ptr<const Request>)>;
using Handler = std::variant<StoreHandler, AsyncHandler>;

// By the operation's name: one for every route of the table.
const std::map<std::string, Handler, std::less<>>& handlers();

// Runs store work for a coroutine: auto rows = co_await in_store(services, work), work: Connection& -> Result<T>.
template <class Work> auto in_store(Services& services, Work work) {
    auto job = [&pool = services.pool, work = std::move(work)]() mutable { return pool.run(std::move(work)); };
    return services.blocking.run(job);
}

} // namespace perfrig::api
