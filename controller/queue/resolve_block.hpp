// From a granted block to the runs that its agent is told: every run is resolved against the machine's profile as it is
// now, and the definition is stored, secrets redacted, with its hash. The agent's copy holds the secrets: they are made
// anew from the submission whenever they are sent, and are never stored twice.
#pragma once

#include "common/protocol/messages.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <vector>

namespace perfrig::queue {

// Those of `runs` (planned or assigned ones of one submission) that the machine can run, in their order. A run that
// can't be resolved is refused with the reason. Database errors come back; call it within a transaction.
Result<std::vector<protocol::AssignedRun>> resolve_runs(db::Connection& c, const model::Submission& submission,
                                                        const model::Machine& machine,
                                                        const std::vector<model::Run>& runs);

// prepare_block carries all of a block's runs in one message; a block beyond this is refused.
constexpr std::size_t most_block_bytes = 48 << 20;
std::size_t encoded_bytes(const std::vector<protocol::AssignedRun>& runs);

} // namespace perfrig::queue
