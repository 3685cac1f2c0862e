#include "agent/run/block_state.hpp"

#include "common/base/file_tree.hpp"

#include <algorithm>
#include <unistd.h>

namespace perfrig {

namespace {
constexpr const char* state_names[] = {"waiting", "open", "ended"};
constexpr std::size_t most_file_size = 512 << 20;

BlockVerdict refused(std::string reason) { return {BlockAnswer::refused, std::move(reason)}; }
} // namespace

bool BlockState::worked() const {
    return block_ != 0 &&
           std::all_of(runs_.begin(), runs_.end(), [](const BlockRun& r) { return r.state == BlockRun::State::ended; });
}

const BlockRun* BlockState::open_run() const {
    for (const BlockRun& run : runs_)
        if (run.state == BlockRun::State::open) return &run;
    return nullptr;
}

const BlockRun* BlockState::next_waiting() const {
    for (const BlockRun& run : runs_)
        if (run.state == BlockRun::State::waiting) return &run;
    return nullptr;
}

BlockRun* BlockState::find(std::int64_t run) {
    for (BlockRun& one : runs_)
        if (one.run == run) return &one;
    return nullptr;
}

BlockVerdict BlockState::fence(std::int64_t token) {
    if (token < highest_token_)
        return refused("token " + std::to_string(token) + " is out of date: this agent has seen " +
                       std::to_string(highest_token_));
    highest_token_ = token;
    return {};
}

BlockVerdict BlockState::prepare(const protocol::PrepareBlock& message) {
    if (BlockVerdict fenced = fence(message.token); fenced.answer == BlockAnswer::refused) return fenced;
    if (block_ == message.block && token_ == message.token) return {BlockAnswer::repeated, {}};
    if (block_ != 0) return refused("block " + std::to_string(block_) + " is still in hand");
    block_ = message.block;
    token_ = message.token;
    runs_.clear();
    for (const protocol::AssignedRun& run : message.runs) {
        if (find(run.run)) continue; // the same run twice in a message is one run
        runs_.push_back({run.run, run.attempt, BlockRun::State::waiting, {}, run.resolved});
    }
    return {};
}

BlockVerdict BlockState::check(std::int64_t block, std::int64_t token) {
    if (BlockVerdict fenced = fence(token); fenced.answer == BlockAnswer::refused) return fenced;
    if (block != block_ || token != token_)
        return refused("block " + std::to_string(block) + " under token " + std::to_string(token) + " is not in hand");
    return {};
}

BlockVerdict BlockState::assign(const protocol::AssignRun& message) {
    if (BlockVerdict known = check(message.block, message.token); known.answer == BlockAnswer::refused) return known;
    if (find(message.run.run)) return {BlockAnswer::repeated, {}};
    // Worked next: behind everything that isn't waiting.
    const auto place =
        std::find_if(runs_.begin(), runs_.end(), [](const BlockRun& r) { return r.state == BlockRun::State::waiting; });
    runs_.insert(place, {message.run.run, message.run.attempt, BlockRun::State::waiting, {}, message.run.resolved});
    return {};
}

BlockVerdict BlockState::end(const protocol::EndBlock& message) {
    if (BlockVerdict fenced = fence(message.token); fenced.answer == BlockAnswer::refused) return fenced;
    if (block_ == 0 && message.block == last_ended_block_) return {BlockAnswer::repeated, {}};
    if (block_ != message.block || token_ != message.token)
        return refused("block " + std::to_string(message.block) + " is not in hand");
    last_ended_block_ = block_;
    give_up();
    return {};
}

void BlockState::give_up() {
    block_ = token_ = 0;
    runs_.clear();
}

void BlockState::run_opened(std::int64_t run) {
    if (BlockRun* one = find(run)) one->state = BlockRun::State::open;
}

void BlockState::run_ended(std::int64_t run, std::string ended_as) {
    BlockRun* one = find(run);
    if (!one) return;
    one->state = BlockRun::State::ended;
    one->ended_as = std::move(ended_as);
    one->resolved = nullptr; // not needed any more: the file stays small
}

Json BlockState::to_json() const {
    Json runs = Json::array();
    for (const BlockRun& run : runs_)
        runs.push_back({{"run", run.run},
                        {"attempt", run.attempt},
                        {"state", state_names[static_cast<int>(run.state)]},
                        {"ended_as", run.ended_as},
                        {"resolved", run.resolved}});
    return {{"version", 1},
            {"block", block_},
            {"token", token_},
            {"highest_token", highest_token_},
            {"last_ended_block", last_ended_block_},
            {"runs", std::move(runs)}};
}

Result<BlockState> BlockState::from_json(const Json& json) {
    JsonReader in(json, "the block in hand");
    if (in.integer("version") != 1) in.fault("only version 1 is known here");
    BlockState state;
    state.block_ = in.integer("block");
    state.token_ = in.integer("token");
    state.highest_token_ = in.integer("highest_token");
    state.last_ended_block_ = in.integer("last_ended_block");
    for (const Json& item : in.array("runs")) {
        JsonReader one(item, "the block in hand, a run");
        BlockRun run{one.integer("run"), static_cast<int>(one.integer("attempt")), BlockRun::State::waiting,
                     one.string("ended_as"), one.any_or_null("resolved")};
        const std::string name = one.string("state");
        bool known = false;
        for (int i = 0; i < 3; ++i)
            if (name == state_names[i]) run.state = static_cast<BlockRun::State>(i), known = true;
        if (!known) one.fault("unknown state '" + name + "'");
        PERFRIG_CHECK(one.finish());
        state.runs_.push_back(std::move(run));
    }
    PERFRIG_CHECK(in.finish());
    return state;
}

Result<BlockState> load_block_state(const std::string& file) {
    if (::access(file.c_str(), F_OK) != 0) return BlockState();
    PERFRIG_TRY(const std::string text, read_file(file, most_file_size));
    PERFRIG_TRY(const Json json, parse_json(text, file));
    return BlockState::from_json(json);
}

Result<void> save_block_state(const std::string& file, const BlockState& state) {
    return write_file_atomically(file, canonical_json(state.to_json()), 0600);
}

} // namespace perfrig
