#include "agent/run/block_worker.hpp"

#include "common/base/log.hpp"
#include "common/process/affinity.hpp"

#include <pthread.h>

namespace perfrig {

namespace {
constexpr Milliseconds sweep_time{60'000};
constexpr Milliseconds clean_time{60'000};
constexpr Milliseconds record_end_time{3'600'000}; // a full disk: the end of a run is worth waiting for
constexpr Milliseconds record_end_time_stopping{5'000};
constexpr std::size_t most_orders = 10'000;
} // namespace

BlockWorker::BlockWorker(const RunMachine& machine, std::string block_file, WorkStatus& status, BlockState state)
    : machine_(machine), block_file_(std::move(block_file)), status_(status), state_(std::move(state)) {}

Result<std::unique_ptr<BlockWorker>> BlockWorker::open(const RunMachine& machine, std::string block_file,
                                                       WorkStatus& status) {
    PERFRIG_TRY(BlockState state, load_block_state(block_file));
    return std::unique_ptr<BlockWorker>(new BlockWorker(machine, std::move(block_file), status, std::move(state)));
}

BlockWorker::~BlockWorker() { stop("the agent ends"); }

Result<void> BlockWorker::start(Say say, std::function<void(std::string)> broken) {
    say_ = std::move(say);
    broken_ = std::move(broken);
    PERFRIG_CHECK(recover());
    thread_ = std::thread([this] { work(); });
    return {};
}

Result<void> BlockWorker::recover() {
    if (const auto swept = machine_.helper.sweep(true, Deadline::in(sweep_time)); swept)
        for (const std::string& run : swept->runs) log::warning("ended what an earlier agent left of " + run);
    else
        soil({0, swept.error().text()}); // said to whoever asks, and to the controller with the first block
    const BlockRun* open = state_.open_run();
    if (!open) return {};
    const BlockRun run = *open;
    log::warning("run " + std::to_string(run.run) + " was open when the agent ended: it is interrupted");
    RunRecorder recorder(machine_.sink, machine_.clock, state_.block(), run.run, {}, interrupt_);
    // Whole files that were kept for it are offered (again): storing an offer twice changes nothing.
    PERFRIG_TRY(const auto artifacts, machine_.artifacts.list(run.run));
    for (const StoredArtifact& artifact : artifacts) {
        PERFRIG_TRY(const std::string sha256, sha256_of_file(artifact.path));
        recorder.event(protocol::ArtifactOffered{artifact.name, sha256, static_cast<std::int64_t>(artifact.size)});
    }
    PERFRIG_CHECK(recorder.end("interrupted", "the agent was restarted"));
    state_.run_ended(run.run, "interrupted");
    return save_block_state(block_file_, state_);
}

void BlockWorker::enqueue(Order order) {
    {
        const std::lock_guard lock(mutex_);
        if (orders_.size() >= most_orders) return log::error("too many orders of the controller wait: one is dropped");
        orders_.push_back(std::move(order));
    }
    changed_.notify_all();
}

void BlockWorker::give(protocol::PrepareBlock message) { enqueue(std::move(message)); }
void BlockWorker::give(protocol::AssignRun message) { enqueue(std::move(message)); }

void BlockWorker::give(protocol::CancelRun message) {
    {
        const std::lock_guard lock(mutex_);
        const BlockRun* open = state_.open_run();
        if (message.block == state_.block() && message.token == state_.token() && open &&
            (message.run == 0 || message.run == open->run))
            interrupt_.set(Interrupt::Kind::cancel, message.reason.empty() ? "cancelled" : message.reason);
    }
    enqueue(std::move(message));
}

void BlockWorker::give(protocol::EndBlock message) {
    {
        const std::lock_guard lock(mutex_);
        if (message.block == state_.block() && message.token == state_.token() && state_.open_run())
            interrupt_.set(Interrupt::Kind::cancel, "the controller ended the block");
    }
    enqueue(message);
}

void BlockWorker::lease_is(std::int64_t block) {
    {
        const std::lock_guard lock(mutex_);
        if (state_.block() != block && state_.open_run())
            interrupt_.set(Interrupt::Kind::lease_lost, "the machine's lease went to another block");
    }
    enqueue(Lease{block});
}

void BlockWorker::stop(std::string reason) {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        interrupt_.set(Interrupt::Kind::shutdown, std::move(reason));
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

BlockStanding BlockWorker::standing() const {
    const std::lock_guard lock(mutex_);
    const BlockRun* open = state_.open_run();
    return {state_.block(), state_.token(), state_.highest_token(), open ? open->run : 0,
            state_.worked() && orders_.empty()};
}

void BlockWorker::break_down(std::string why) {
    {
        const std::lock_guard lock(mutex_);
        if (broke_) return;
        broke_ = true;
    }
    broken_(std::move(why));
}

bool BlockWorker::save() {
    const auto saved = save_block_state(block_file_, state_);
    if (!saved) break_down(saved.error().text());
    return saved.has_value();
}

void BlockWorker::work() {
    ::pthread_setname_np(::pthread_self(), "perfrig-worker");
    pin_this_thread(machine_.monitor_cpus());
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] {
            return stop_ ||
                   (!broke_ && (!orders_.empty() || state_.next_waiting() || (state_.worked() && !said_worked_)));
        });
        if (stop_) return;
        if (!orders_.empty()) {
            const Order order = std::move(orders_.front());
            orders_.pop_front();
            lock.unlock();
            std::visit([this](const auto& one) { obey(one); }, order);
            lock.lock();
        } else if (state_.next_waiting()) {
            lock.unlock();
            run_next();
            lock.lock();
        } else {
            said_worked_ = true;
            const protocol::BlockWorked worked{state_.block(), state_.token()};
            lock.unlock();
            say_(worked);
            lock.lock();
        }
    }
}

void BlockWorker::soil(Dirt dirt) {
    dirt_ = std::move(dirt);
    status_.set_dirty(dirt_->text());
    log::error(dirt_->text());
}

std::string BlockWorker::Dirt::text() const {
    return (run ? "what run " + std::to_string(run) + " left" : "what an earlier start of this agent left") +
           " can't be ended: " + why;
}

bool BlockWorker::clean() {
    if (!dirt_) return true;
    const auto deadline = Deadline::in(clean_time);
    std::string why;
    if (dirt_->run == 0) {
        if (const auto swept = machine_.helper.sweep(true, deadline); !swept) why = swept.error().text();
    } else {
        const auto ended = machine_.helper.end_run(dirt_->run, true, deadline);
        if (!ended || !ended->clean) why = ended ? ended->why : ended.error().text();
    }
    if (!why.empty()) {
        dirt_->why = std::move(why);
        status_.set_dirty(dirt_->text());
        return false;
    }
    dirt_.reset();
    status_.set_dirty("");
    log::info("what was left is ended: this machine measures again");
    return true;
}

void BlockWorker::obey(const protocol::PrepareBlock& order) {
    if (standing().block == 0 && !clean()) {
        log::warning("block " + std::to_string(order.block) + " is refused: " + dirt_->text());
        return say_(
            protocol::BlockRefused{order.block, order.token, "this machine is not clean: " + dirt_->text(), true});
    }
    BlockVerdict verdict;
    {
        const std::lock_guard lock(mutex_);
        verdict = state_.prepare(order);
        if (verdict.answer == BlockAnswer::taken) said_worked_ = false;
    }
    if (!save()) return;
    if (verdict.answer == BlockAnswer::refused) {
        log::warning("block " + std::to_string(order.block) + " is refused: " + verdict.reason);
        return say_(protocol::BlockRefused{order.block, order.token, verdict.reason, false});
    }
    if (verdict.answer == BlockAnswer::taken)
        log::info("took block " + std::to_string(order.block) + " with " + std::to_string(order.runs.size()) + " runs");
    say_(protocol::BlockReady{order.block, order.token});
}

void BlockWorker::obey(const protocol::AssignRun& order) {
    BlockVerdict verdict;
    {
        const std::lock_guard lock(mutex_);
        verdict = state_.assign(order);
        if (verdict.answer != BlockAnswer::refused) said_worked_ = false; // say again when it is worked
    }
    if (verdict.answer == BlockAnswer::refused)
        log::warning("run " + std::to_string(order.run.run) + " is not taken: " + verdict.reason);
    save();
}

void BlockWorker::end_waiting_run(const BlockRun& run, const std::string& state, const std::string& reason) {
    Interrupt unused;
    RunRecorder recorder(machine_.sink, machine_.clock, state_.block(), run.run, {}, unused);
    const auto written = recorder.end(state, reason);
    if (!written) return break_down(written.error().text());
    const std::lock_guard lock(mutex_);
    state_.run_ended(run.run, state);
}

void BlockWorker::obey(const protocol::CancelRun& order) {
    BlockVerdict verdict;
    std::vector<BlockRun> waiting;
    {
        const std::lock_guard lock(mutex_);
        verdict = state_.check(order.block, order.token);
        if (verdict.answer != BlockAnswer::refused)
            for (const BlockRun& run : state_.runs())
                if (run.state == BlockRun::State::waiting && (order.run == 0 || order.run == run.run))
                    waiting.push_back(run);
    }
    if (verdict.answer == BlockAnswer::refused) log::warning("a cancel is not taken: " + verdict.reason);
    for (const BlockRun& run : waiting)
        end_waiting_run(run, "cancelled", order.reason.empty() ? "cancelled" : order.reason);
    save();
}

void BlockWorker::obey(const protocol::EndBlock& order) {
    BlockVerdict verdict;
    std::vector<BlockRun> waiting;
    {
        const std::lock_guard lock(mutex_);
        if (order.block == state_.block() && order.token == state_.token())
            for (const BlockRun& run : state_.runs())
                if (run.state == BlockRun::State::waiting) waiting.push_back(run);
    }
    for (const BlockRun& run : waiting) end_waiting_run(run, "cancelled", "the controller ended the block");
    {
        const std::lock_guard lock(mutex_);
        verdict = state_.end(order);
    }
    if (!save()) return;
    if (verdict.answer == BlockAnswer::refused) return log::warning("end_block is not taken: " + verdict.reason);
    log::info("released block " + std::to_string(order.block));
    say_(protocol::BlockReleased{order.block, order.token});
}

void BlockWorker::obey(const Lease& order) {
    {
        const std::lock_guard lock(mutex_);
        if (state_.block() == 0 || state_.block() == order.block) return;
        log::warning("block " + std::to_string(state_.block()) + " is no longer ours and is given up");
        state_.give_up();
    }
    save();
}

void BlockWorker::run_next() {
    BlockRun next;
    std::int64_t block = 0;
    if (!clean()) {
        std::vector<BlockRun> waiting;
        for (const BlockRun& run : state_.runs())
            if (run.state == BlockRun::State::waiting) waiting.push_back(run);
        for (const BlockRun& run : waiting)
            end_waiting_run(run, "interrupted", "this machine is not clean: " + dirt_->text());
        save();
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        // An order that came since may be about this very run, and found nothing open that it could interrupt.
        if (stop_ || !orders_.empty()) return;
        next = *state_.next_waiting();
        block = state_.block();
        interrupt_.clear();
        state_.run_opened(next.run);
    }
    if (!save()) return;
    log::info("run " + std::to_string(next.run) + " begins");
    Execution execution(machine_, block, {next.run, next.attempt, next.resolved}, interrupt_, status_);
    const RunOutcome outcome = execution.work();
    std::optional<Deadline> hurry; // set once the agent is told to stop, before or while it is tried
    const auto recorded = execution.record_end(outcome, Deadline::in(record_end_time), [&] {
        const std::lock_guard lock(mutex_);
        if (stop_ && !hurry) hurry = Deadline::in(record_end_time_stopping);
        return hurry && hurry->passed();
    });
    status_.set({});
    log::info("run " + std::to_string(next.run) + " " + outcome.state +
              (outcome.reason.empty() ? std::string() : ": " + outcome.reason));
    // An end that could not be recorded stays open: the next start records it as interrupted.
    if (!recorded)
        return break_down("the end of run " + std::to_string(next.run) +
                          " can't be recorded: " + recorded.error().text());
    {
        const std::lock_guard lock(mutex_);
        state_.run_ended(next.run, outcome.state);
    }
    if (!outcome.leftovers.empty() && !outcome.helper_lost) soil({next.run, outcome.leftovers});
    if (save() && outcome.helper_lost) break_down("the helper is gone");
}

} // namespace perfrig
