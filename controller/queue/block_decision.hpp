// What a block in the hands of a connected agent needs next. Pure.
#pragma once

#include "common/base/clock.hpp"
#include "controller/model/states.hpp"

#include <cstdint>
#include <optional>

namespace perfrig::queue {

// How long after the last run's end the agent may keep its word (block_worked) back before the block is ended anyway:
// the agent ends what it still runs when it is told to.
constexpr Milliseconds worked_patience{120'000};

// And how long the block waits for artifacts that were offered and have not arrived. They come later if need be: an
// agent keeps them until the controller has them.
constexpr Milliseconds artifact_patience{60'000};

struct BlockView {
    model::LeaseState lease = model::LeaseState::active;
    std::int64_t open_runs = 0;         // of the block, in the database: retries that were made are among them
    std::int64_t missing_artifacts = 0; // offered by its runs, and not here yet
    bool worked = false;                // the agent said that it has nothing left to do and to send
    bool cancel_requested = false;      // of the submission
    bool told_to_cancel = false;        // within this session
    bool told_to_end = false;           // within this session
    Milliseconds all_ended_for{0};      // since the last run ended; counts where open_runs is 0
};

enum class BlockStep {
    none,
    cancel_runs, // send cancel_run for all of them
    end_block,   // the lease becomes releasing; send end_block
};

BlockStep decide_block(const BlockView& view);

} // namespace perfrig::queue
