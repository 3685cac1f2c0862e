// One agent's link from hello to its end. Four coroutines share it: the reader answers heartbeats and passes records
// on, the keeper renews the lease, the storer (batch_storer.hpp) brings one batch after the other into the database and
// acknowledges it, the writer sends what the scheduler and the others have to say.
#pragma once

#include "common/net/blocking_pool.hpp"
#include "common/net/websocket.hpp"
#include "controller/agents/finisher.hpp"
#include "controller/agents/ingest_counts.hpp"
#include "controller/agents/registry.hpp"

namespace perfrig::agents {

struct SessionServices {
    boost::asio::any_io_executor executor;
    db::Pool& pool;
    BlockingPool& blocking;
    Registry& registry;
    queue::Scheduler& scheduler;
    Finisher& finisher;
    AsyncEvent& changed; // notified when followers have something to see
    IngestCounts& counts;
};

// Whose link it is, by the token that opened it.
struct AgentIdentity {
    model::Id machine = 0;
    std::string name, token_hash;
};

// Returns when the link has ended. It is ended, with the reason in a last message and in the close frame, where the
// hello is refused, a word can't be understood or acts on a lease that is another's, and where the token is revoked: at
// once by Registry::cut_token, or within a heartbeat where another controller did it.
boost::asio::awaitable<void> run_session(WebSocket socket, AgentIdentity agent, SessionServices& services);

} // namespace perfrig::agents
