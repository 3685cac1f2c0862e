// Submissions with their cells, blocks and planned runs.
#pragma once

#include "controller/db/page.hpp"
#include "controller/model/run.hpp"
#include "controller/model/submission.hpp"

#include "controller/db/connection.hpp"

#include <optional>
#include <string_view>

namespace perfrig::db::submissions {

struct Created {
    model::Id id = 0;
    bool existed = false;                // the same key came before with the same definition: nothing was made
    std::vector<model::Id> blocks, runs; // ids in the order of the input; empty where it existed
};
// Everything or nothing, in one transaction. The idempotency key counts per token: the same definition gives the same
// submission; another gives bad_input ("the key was used for another definition").
Result<Created> create(Connection& c, const model::NewSubmission& submission);

Result<model::Submission> get(Connection& c, model::Id submission);   // with its definition; not_found
Result<model::Submission> brief(Connection& c, model::Id submission); // without; not_found
Result<Page<model::Submission>> list(Connection& c, PageRequest page,
                                     std::optional<model::SubmissionState> state = std::nullopt,
                                     std::string_view experiment = {});
Result<model::RunCounts> counts(Connection& c, model::Id submission);
// By rising ordinal, those behind `after` (0: from the first), at most `limit`.
Result<std::vector<model::Cell>> cells(Connection& c, model::Id submission, int after, int limit);
Result<std::vector<model::Block>> blocks(Connection& c, model::Id submission);

struct Experiment {
    model::Id id = 0;
    std::string name;
    std::int64_t created_utc_ns = 0;
    std::int64_t submissions = 0;
    model::Id last_submission = 0;
};
Result<Page<Experiment>> experiments(Connection& c, PageRequest page);

// Marks it; planned runs of pending blocks are cancelled at once, blocks in hand are the scheduler's to end. Returns
// the submission after that; asking again, or after its end, changes nothing.
Result<model::Submission> request_cancel(Connection& c, model::Id submission, std::string_view reason,
                                         std::string_view actor);

// Ends the submission where every run has ended and is sealed, and no block is in hand: cancelled where that was asked
// for, failed where the last attempt of any replicate failed or was interrupted, or where all were refused, else
// completed (some refused runs do not fail it: a machine may refuse a cell). Returns the state after.
Result<model::SubmissionState> finish_if_done(Connection& c, model::Id submission);
Result<std::vector<model::Id>> open(Connection& c); // queued or running

} // namespace perfrig::db::submissions
