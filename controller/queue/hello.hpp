// Taking an agent's hello: the decision of hello_decision.hpp carried out in the database, in one transaction. Blocks.
#pragma once

#include "common/base/clock.hpp"
#include "common/protocol/messages.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <string>
#include <vector>

namespace perfrig::queue {

struct LeaseTimes {
    Milliseconds lease{15'000};         // a lease lives this long without a heartbeat
    Milliseconds heartbeat{2'000};      // what agents are asked for
    Milliseconds start_within{120'000}; // an assigned run must begin by then, once it is the next
};

struct HelloTaken {
    protocol::Welcome welcome; // all but the session
    std::vector<protocol::FromController> then;
    std::string told; // one line for the log
};

// As check_hello(); conflict: an epoch lower than one seen before, or an epoch that was another agent's.
Result<HelloTaken> take_hello(db::Connection& c, model::Id machine, const protocol::Hello& hello,
                              const LeaseTimes& times);

// prepare_block for a lease that stands, its runs resolved against the machine's present profile; none where no run is
// left to be made (the block has ended then, and its lease with it).
Result<std::vector<protocol::FromController>> prepare_block(db::Connection& c, const model::Machine& machine,
                                                            const model::Lease& lease,
                                                            const std::vector<model::Run>& runs);

} // namespace perfrig::queue
