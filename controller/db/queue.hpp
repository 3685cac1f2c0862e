// The queue's primitives: blocks wait, leases give one block the exclusive right to one machine, and a fencing token
// says which lease is the latest. Times come from the database's clock. What to do when is decided in controller/queue.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"
#include "controller/model/submission.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace perfrig::db::queue {

struct PendingBlock {
    model::Block block;
    int priority = 0;
    std::optional<std::string> machine_name;
    Json machine_labels = Json::object();
};
// What waits, in the order of granting (larger priority, then older submission, then ordinal); at most `limit`.
Result<std::vector<PendingBlock>> pending(Connection& c, int limit);

struct Granted {
    model::Lease lease;
    model::Block block;
    std::vector<model::Run> runs; // planned ones in order, with their resolved definitions; now assigned
};
// Grants the machine the next pending block that asks for it by name or whose labels it has. One transaction: the
// machine must be idle and without a lease; block, machine, submission and runs change state together. None: nothing
// waits for it, it isn't idle, or another scheduler was faster. `lease_for` and `start_within` from now.
Result<std::optional<Granted>> grant_next(Connection& c, model::Id machine, Milliseconds lease_for,
                                          Milliseconds start_within);
// The same for one block. conflict: it isn't pending or the machine isn't free.
Result<Granted> grant(Connection& c, model::Id block, model::Id machine, Milliseconds lease_for,
                      Milliseconds start_within);

Result<std::optional<model::Lease>> lease_of(Connection& c, model::Id machine);
Result<std::vector<model::Lease>> leases(Connection& c);
// Each of these acts only where machine and token match the lease that stands; false: fenced off, nothing changed.
Result<bool> renew(Connection& c, model::Id machine, std::int64_t token, Milliseconds lease_for); // silent -> active
Result<bool> set_state(Connection& c, model::Id machine, std::int64_t token, model::LeaseState state);
// Ends the lease: its block becomes `block_state` (done, refused, pending, cancelled), the machine idle, or held where
// it was draining.
Result<bool> end(Connection& c, model::Id machine, std::int64_t token, model::BlockState block_state,
                 std::string_view reason);
// Leases whose renew_by has passed become silent (machine unreachable); returns those that just did.
Result<std::vector<model::Lease>> mark_silent(Connection& c);
// The machine can't be measured on: its block, of which nothing began, waits for another one, and it is quarantined
// (held where it was draining) until a person releases it. False: the lease is another's by now.
Result<bool> quarantine(Connection& c, model::Id machine, std::int64_t token, std::string_view reason);
// A person, or a clean hello after a power cycle, takes the machine back: open runs of the block are interrupted and
// their next attempts made where that is allowed, the block waits again where it has runs left (else done), the lease
// ends, and the token sequence grows, so that whatever comes with the old token is fenced off. Returns the block.
Result<std::optional<model::Id>> revoke(Connection& c, model::Id machine, std::string_view reason,
                                        std::string_view actor);

Result<model::Block> block(Connection& c, model::Id block);                    // not_found
Result<std::vector<model::Run>> runs_of_block(Connection& c, model::Id block); // in order, with resolved
// Whether every run of the block has ended, and whether records of ended ones still wait to be sealed.
struct BlockProgress {
    std::int64_t open = 0, unsealed = 0;
};
Result<BlockProgress> progress(Connection& c, model::Id block);

// Only while planned or assigned and never begun: definitions that depend on the machine's profile.
Result<bool> set_resolved(Connection& c, model::Id run, const Json& resolved, std::string_view sha);

constexpr int most_attempts = 3;
// The next attempt at an interrupted run: a new run in the same block with the same definition, planned or, where
// the block is in hand, assigned to its machine. None: the submission is to be cancelled, it was the third attempt, or
// the run was not interrupted. Asked twice, the same run comes back.
Result<std::optional<model::Run>> retry(Connection& c, model::Id run, Milliseconds start_within);

// Interrupted runs that should have a next attempt and have none yet, though no machine has their block any more: they
// ended so late that it ended with them, or a controller died in between. A block in hand gets its own retries.
Result<std::vector<model::Id>> retryable(Connection& c, int limit);

// Open runs whose deadline has passed by the database's clock, oldest first; of one block where it is named.
Result<std::vector<model::Run>> overdue_runs(Connection& c, int limit, model::Id block = 0);

} // namespace perfrig::db::queue
