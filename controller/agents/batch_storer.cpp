#include "controller/agents/batch_storer.hpp"

#include "common/base/log.hpp"
#include "common/net/backoff.hpp"
#include "common/protocol/spool_record.hpp"
#include "controller/ingest/ingest.hpp"

namespace perfrig::agents {

namespace asio = boost::asio;

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t most_waiting_batches = 4; // of at most 1 MiB each
constexpr Milliseconds store_within{60'000};    // one try
constexpr Milliseconds patience{300'000};       // with a database that is gone, before the link is given up
constexpr Milliseconds look_again{5'000};

} // namespace

BatchStorer::BatchStorer(SessionServices& services, model::Id machine, std::string name, Answers answers)
    : services_(services), machine_(machine), name_(std::move(name)), answers_(std::move(answers)),
      came_(services.executor), left_(services.executor) {}

void BatchStorer::expect(const protocol::Hello& hello) {
    epochs_.insert(hello.epoch);
    for (const auto& range : hello.spool) epochs_.insert(range.epoch);
}

void BatchStorer::stop() {
    stopped_ = true;
    came_.notify_all();
    left_.notify_all();
}

asio::awaitable<void> BatchStorer::add(std::string frame) {
    while (!stopped_ && batches_.size() >= most_waiting_batches) co_await left_.wait(Deadline::in(look_again));
    if (stopped_) co_return;
    batches_.push_back(std::move(frame));
    came_.notify_all();
}

asio::awaitable<void> BatchStorer::run() {
    while (!stopped_) {
        if (batches_.empty()) {
            co_await came_.wait(Deadline::in(look_again));
            continue;
        }
        co_await store(std::move(batches_.front())); // its place is kept until it is stored
        batches_.pop_front();
        left_.notify_all();
    }
}

void BatchStorer::fail_with(const std::string& why) {
    ++services_.counts.failed_batches;
    answers_.failed(why);
}

asio::awaitable<void> BatchStorer::store(std::string frame) {
    auto batch = protocol::decode_batch(frame);
    if (!batch) co_return fail_with("its records are not understood: " + batch.error().text());
    if (!epochs_.contains(batch->epoch)) // nobody has looked whose start that was
        co_return fail_with("its hello said nothing of the records of epoch " + std::to_string(batch->epoch));
    const auto records = std::make_shared<const protocol::RecordBatch>(std::move(*batch));
    const auto give_up = Deadline::in(patience);
    Backoff backoff(Milliseconds{100}, Milliseconds{5'000});
    const auto started = Steady::now();
    while (!stopped_) {
        auto job = [&pool = services_.pool, machine = machine_, records] {
            return pool.run_in_transaction(Deadline::in(store_within), [&](db::Connection& c) {
                return ingest::store_batch(c, machine, *records);
            });
        };
        auto stored = co_await services_.blocking.run(job);
        if (stored)
            co_return count(*stored, frame.size(), std::chrono::duration<double>(Steady::now() - started).count());
        const auto kind = stored.error().kind;
        const bool passes = kind == ErrorKind::unavailable || kind == ErrorKind::timed_out;
        if (!passes || give_up.passed()) {
            // A gap, or what only a new hello with its cursors can put right.
            log::warning("records of " + name_ + " can't be stored: " + stored.error().text());
            co_return fail_with("its records could not be stored: " + stored.error().text());
        }
        ++services_.counts.failed_batches;
        co_await came_.wait(Deadline::in(backoff.next(random_())));
    }
}

void BatchStorer::count(const ingest::Stored& stored, std::size_t bytes, double seconds) {
    auto& counts = services_.counts;
    ++counts.batches;
    counts.bytes += static_cast<std::int64_t>(bytes);
    counts.stored += static_cast<std::int64_t>(stored.stored);
    counts.skipped += static_cast<std::int64_t>(stored.skipped);
    counts.rejected += static_cast<std::int64_t>(stored.rejected);
    counts.add_latency(seconds);
    answers_.stored(protocol::Ack{stored.cursor});
    for (const auto run : stored.to_finish) services_.finisher.add(run);
    if (!stored.to_finish.empty() || !stored.interrupted.empty()) services_.scheduler.nudge();
    if (!stored.changed.empty()) services_.changed.notify_all();
}

} // namespace perfrig::agents
