// One look of the scheduler at the queue: everything that is due now for the agents connected to this controller. It
// reads what stands in the database, decides, changes the database, and returns what is to be said to agents once that
// is committed. Whatever is lost on the way (this controller may be killed at any moment) is found again by the next
// look or by the agent's next hello. Blocks; runs on a worker thread.
//
// Several controllers may look at one database: each acts for its own agents, and blocks are granted under row locks.
#pragma once

#include "common/protocol/messages.hpp"
#include "controller/db/pool.hpp"
#include "controller/queue/hello.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace perfrig::queue {

struct ConnectedAgent {
    model::Id machine = 0;
    std::string session;
    std::int64_t worked_token = 0; // of the last block_worked that nothing was assigned behind
};

// What was said to an agent in its present session and need not be said again. Lost with the session.
struct SaidToAgent {
    std::string session;
    std::int64_t token = 0; // of the lease that the rest is about
    bool cancel = false;
    bool end = false;
    std::chrono::steady_clock::time_point prepared; // when the block was last told, or the session found with it
    std::set<model::Id> runs;                       // retries assigned
    std::map<model::Id, std::chrono::steady_clock::time_point> overdue; // asked to cancel
};

struct PassInput {
    std::vector<ConnectedAgent> agents;
    std::map<model::Id, SaidToAgent> said; // by machine
    bool look_for_silence = false;         // false while the database was gone just now: nobody could renew a lease
    bool finish_submissions = false;
};

struct Outgoing {
    model::Id machine = 0;
    std::string session; // goes only there: a newer session learns all by its hello
    protocol::FromController message;
};

struct PassOutput {
    std::map<model::Id, SaidToAgent> said;
    std::vector<Outgoing> messages;
    std::vector<std::string> log; // what was decided, for people
    std::int64_t granted = 0, retried = 0, overdue = 0, silenced = 0, ended = 0, cancelled = 0;
    bool changed = false;       // followers have something to see
    std::optional<Error> error; // the first one. What was committed before it stands in the rest, and is to be said
};

PassOutput look_at_queue(db::Pool& pool, PassInput input, const LeaseTimes& times);

} // namespace perfrig::queue
