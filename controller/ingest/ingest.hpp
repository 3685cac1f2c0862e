// The way in for what agents measured: a batch of spool records becomes rows, in one transaction with the cursor that
// says how far the agent's stream is stored. The same batch twice, overlapping ones, and a controller that dies in
// between change nothing: a record is stored once.
//
// A record that can't be applied (not understood, a run that is unknown or another machine's) must not block the stream
// for ever: it becomes an event 'record_rejected' with the reason, and the cursor goes on.
#pragma once

#include "common/protocol/messages.hpp"
#include "common/protocol/spool_record.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <vector>

namespace perfrig::ingest {

struct Stored {
    protocol::Cursor cursor;                             // acknowledge this
    std::uint64_t stored = 0, skipped = 0, rejected = 0; // records: new ones, known ones, those that became events
    // Runs that ended, or ended earlier and got late records: give each to finish_run.
    std::vector<model::Id> to_finish;
    std::vector<model::Id> interrupted; // of those that ended: candidates for queue::retry
    std::vector<model::Id> changed;     // runs that any event or sample of the batch was about
};

// conflict ("gap"): the first new record is not the one behind the cursor; nothing is stored. The agent is told the
// cursor and sends again from there. Sequence numbers must rise by one within the batch (bad_input).
Result<Stored> store_batch(db::Connection& c, model::Id machine, const protocol::RecordBatch& batch);

// Seals an ended run and evaluates it: derived metrics, findings, placement verdict. One transaction; idempotent.
// Takes seconds for a large run: give it a deadline of a minute. conflict: it has not ended.
Result<void> finish_run(db::Connection& c, model::Id run);

// Where finish_run fails for good: the run counts as sealed with a finding that says why, so that its submission ends.
// Its frames stay; late records make finish_run due again.
Result<void> give_up_run(db::Connection& c, model::Id run, const std::string& why);

} // namespace perfrig::ingest
