// The block that the agent has in hand, as a pure state machine: what the controller says and what runs do, in; what is
// to be answered and worked next, out. The worker persists it before it acts on it, so that a restart resumes the block
// and never the run. The highest fencing token outlives the block.
//
//   none -> working -> worked -> none          (prepare_block; every run ended; end_block)
//   each run: waiting -> open -> ended
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"
#include "common/protocol/messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

struct BlockRun {
    enum class State { waiting, open, ended };
    std::int64_t run = 0;
    int attempt = 1;
    State state = State::waiting;
    std::string ended_as; // completed, failed ... once ended
    Json resolved;
};

// What came of a message of the controller's.
enum class BlockAnswer {
    taken,    // new: act on it
    repeated, // known already: answer as before, do nothing
    refused,  // see the reason
};
struct BlockVerdict {
    BlockAnswer answer = BlockAnswer::taken;
    std::string reason; // where refused: for the controller and for people
};

class BlockState {
  public:
    std::int64_t block() const { return block_; } // 0: none in hand
    std::int64_t token() const { return token_; } // of the block in hand
    std::int64_t highest_token() const { return highest_token_; }
    const std::vector<BlockRun>& runs() const { return runs_; }
    bool worked() const; // a block is in hand and every run of it has ended
    const BlockRun* open_run() const;
    const BlockRun* next_waiting() const; // in order; retries come right behind the run that is open or ended last

    BlockVerdict prepare(const protocol::PrepareBlock& message);
    BlockVerdict assign(const protocol::AssignRun& message);
    // Whether a message with this block and token may act on what is in hand; raises the highest token.
    BlockVerdict check(std::int64_t block, std::int64_t token);
    // end_block: taken when the block was in hand, repeated when it was ended before.
    BlockVerdict end(const protocol::EndBlock& message);
    void give_up(); // the lease is gone: the block is no longer ours

    void run_opened(std::int64_t run);
    void run_ended(std::int64_t run, std::string ended_as);

    Json to_json() const;
    static Result<BlockState> from_json(const Json& json);

  private:
    BlockRun* find(std::int64_t run);
    BlockVerdict fence(std::int64_t token);
    std::int64_t block_ = 0, token_ = 0, highest_token_ = 0;
    std::int64_t last_ended_block_ = 0; // so that a repeated end_block is answered again
    std::vector<BlockRun> runs_;
};

// On disk: FILE, whole or not at all. A missing file is a fresh state.
Result<BlockState> load_block_state(const std::string& file);
Result<void> save_block_state(const std::string& file, const BlockState& state);

} // namespace perfrig
