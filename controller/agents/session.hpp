// One agent's link from hello to its end. Four coroutines share it: the reader answers heartbeats and passes records
// on, the keeper renews the lease, the storer brings one batch after the other into the database and acknowledges it,
// the writer sends what the scheduler and the others have to say.
//
// While the database is gone, batches wait in a queue of bounded size, then the link itself is no longer read: the
// agent's spool holds everything. Nothing is acknowledged that is not committed.
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

// `machine` is the one that the agent's token belongs to. Returns when the link has ended.
boost::asio::awaitable<void> run_session(WebSocket socket, model::Id machine, std::string machine_name,
                                         SessionServices& services);

} // namespace perfrig::agents
