// What an agent's control messages change in the database. Each is a value with one function, called within a
// transaction on a worker thread. A message with another token than the lease that stands is fenced off.
#pragma once

#include "common/protocol/messages.hpp"
#include "controller/db/connection.hpp"
#include "controller/queue/hello.hpp"

#include <optional>
#include <string>

namespace perfrig::agents {

struct Applied {
    std::string fenced;   // why nothing changed; empty: all is well
    bool revoked = false; // the link's token is good no more, whoever revoked it: nothing changed
};

// Also looks whether the token that opened the link still stands. Without a heartbeat that is all it does.
struct HeartbeatTaken {
    std::optional<protocol::Heartbeat> beat;
    std::string token_hash;
    Result<Applied> apply(db::Connection& c, model::Id machine, const queue::LeaseTimes& times) const;
};

// block_ready, block_refused, block_released.
struct BlockWord {
    protocol::FromAgent message;
    Result<Applied> apply(db::Connection& c, model::Id machine, const queue::LeaseTimes& times) const;
};

} // namespace perfrig::agents
