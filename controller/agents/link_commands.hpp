// What an agent's control messages change in the database. Each is a value with one function, called within a
// transaction on a worker thread. A message with another token than the lease that stands is fenced off.
#pragma once

#include "common/protocol/messages.hpp"
#include "controller/db/connection.hpp"
#include "controller/queue/hello.hpp"

#include <string>

namespace perfrig::agents {

struct Applied {
    std::string fenced; // why nothing changed; empty: all is well
};

struct HeartbeatTaken {
    protocol::Heartbeat beat;
    Result<Applied> apply(db::Connection& c, model::Id machine, const queue::LeaseTimes& times) const;
};

// block_ready, block_refused, block_released.
struct BlockWord {
    protocol::FromAgent message;
    Result<Applied> apply(db::Connection& c, model::Id machine, const queue::LeaseTimes& times) const;
};

} // namespace perfrig::agents
