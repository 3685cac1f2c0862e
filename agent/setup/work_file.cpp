// `perfrig-agent work FILE`: the same worker and the same spool as under a controller, only that nobody is dialled.
#include "agent/setup/agent_process.hpp"

#include "agent/run/block_worker.hpp"
#include "agent/setup/machine_parts.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/log.hpp"
#include "common/protocol/sample_frame.hpp"

#include <condition_variable>
#include <csignal>
#include <iostream>

namespace perfrig {

namespace {

Result<protocol::PrepareBlock> read_block(const std::string& file) {
    PERFRIG_TRY(const std::string text, read_file(file));
    PERFRIG_TRY(const Json json, parse_json(text, file));
    JsonReader in(json, file);
    protocol::PrepareBlock block{1, 1, {}};
    for (const Json& item : in.array("runs")) {
        JsonReader one(item, file + ", a run");
        block.runs.push_back(
            {one.integer("run"), static_cast<int>(one.integer_or("attempt", 1)), one.any_or_null("resolved")});
        PERFRIG_CHECK(one.finish());
    }
    PERFRIG_CHECK(in.finish());
    return block;
}

// Prints the records of this start and says whether every run completed.
Result<bool> print_records(Spool& spool) {
    bool all_good = true;
    SpoolPosition at{spool.epoch(), 0};
    while (true) {
        PERFRIG_TRY(const auto chunk, spool.read_after(at, 1 << 20));
        if (!chunk) return all_good;
        std::string_view left = chunk->records;
        while (!left.empty()) {
            PERFRIG_TRY(const auto record, protocol::take_record(left));
            if (record.kind == protocol::RecordKind::run_event) {
                std::cout << record.payload << "\n";
                PERFRIG_TRY(const auto event, protocol::decode_run_event(record.payload));
                const auto* state = std::get_if<protocol::StateChanged>(&event.body);
                if (state && protocol::is_end_state(state->state) && state->state != "completed") all_good = false;
                continue;
            }
            PERFRIG_TRY(const auto frame, protocol::decode_samples(record.payload));
            std::cout << Json{{"samples", frame.samples.size()}, {"run", frame.run}, {"time_ns", frame.time_ns}}.dump()
                      << "\n";
        }
        at = {chunk->epoch, chunk->last_seq};
        spool.acknowledge(at);
    }
}

} // namespace

int work_file(const AgentConfig& config, const std::string& file) {
    const auto stop_with = [](const Error& error) {
        log::error(error.text());
        return error.kind == ErrorKind::bad_input ? 2 : 3;
    };
    auto block = read_block(file);
    if (!block) return stop_with(block.error());
    sigset_t signals; // blocked in every thread, taken by the one below
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    auto parts = MachineParts::make(config);
    if (!parts) return stop_with(parts.error());
    WorkStatus status;
    auto worker = BlockWorker::open((*parts)->machine, (*parts)->state.file("block.json"), status);
    if (!worker) return stop_with(worker.error());
    const BlockStanding before = (*worker)->standing();
    if (before.block != 0)
        return stop_with(fail(ErrorKind::conflict, "work", file,
                              "block " + std::to_string(before.block) + " is in hand here",
                              "name another --state-dir"));
    block->token = before.highest_token + 1;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::string broken;
    const auto started = (*worker)->start(
        [&](const protocol::FromAgent& message) {
            if (!std::holds_alternative<protocol::BlockWorked>(message)) return;
            const std::lock_guard lock(mutex);
            done = true;
            changed.notify_all();
        },
        [&](std::string why) {
            const std::lock_guard lock(mutex);
            broken = std::move(why);
            changed.notify_all();
        });
    if (!started) return stop_with(started.error());
    const protocol::EndBlock end{block->block, block->token};
    (*worker)->give(std::move(*block));
    bool interrupted = false;
    {
        std::unique_lock lock(mutex);
        while (!done && broken.empty() && !interrupted) {
            changed.wait_for(lock, std::chrono::milliseconds(100));
            const timespec none{};
            interrupted = ::sigtimedwait(&signals, nullptr, &none) > 0;
        }
    }
    if (done) (*worker)->give(end);
    if (done)
        for (const Deadline deadline = Deadline::in(Milliseconds(5'000));
             (*worker)->standing().block != 0 && !deadline.passed();)
            ::usleep(10'000);
    (*worker)->stop("it was stopped by a signal");
    const auto good = print_records(*(*parts)->spool);
    if (!good) return stop_with(good.error());
    if (!broken.empty()) return stop_with(fail(ErrorKind::unavailable, "work", file, broken));
    return *good && done ? 0 : 1;
}

} // namespace perfrig
