#include "controller/queue/scheduler.hpp"

#include "common/base/log.hpp"

namespace perfrig::queue {

namespace {

using Steady = std::chrono::steady_clock;
constexpr Milliseconds tick{1'000};
constexpr Milliseconds tick_without_database{2'000};
constexpr Milliseconds finish_every{5'000};

} // namespace

Scheduler::Scheduler(boost::asio::any_io_executor executor, db::Pool& pool, BlockingPool& blocking, AgentLinks& links,
                     AsyncEvent& changed, LeaseTimes times)
    : pool_(pool), blocking_(blocking), links_(links), changed_(changed), woken_(executor), times_(times),
      trusted_from_(Steady::now() + times.lease) {}

void Scheduler::nudge() {
    nudged_ = true;
    woken_.notify_all();
}

void Scheduler::stop() {
    stopping_ = true;
    woken_.notify_all();
}

boost::asio::awaitable<void> Scheduler::run() {
    while (!stopping_) {
        const bool finish = std::exchange(nudged_, false) || Steady::now() - finished_at_ >= finish_every;
        if (finish) finished_at_ = {};
        co_await look();
        if (!stopping_ && !nudged_) co_await woken_.wait(Deadline::in(complained_ ? tick_without_database : tick));
    }
}

boost::asio::awaitable<void> Scheduler::look() {
    const auto started = Steady::now();
    PassInput input;
    input.agents = links_.connected();
    input.said = said_;
    input.look_for_silence = started >= trusted_from_;
    input.finish_submissions = finished_at_ == Steady::time_point{};
    auto job = [&pool = pool_, times = times_, input = std::move(input)]() -> Result<PassOutput> {
        return look_at_queue(pool, input, times);
    };
    auto out = co_await blocking_.run(job);
    ++counts_.passes;
    counts_.last_pass_seconds = std::chrono::duration<double>(Steady::now() - started).count();
    std::optional<Error> error;
    if (!out)
        error = out.error();
    else
        error = std::exchange(out->error, std::nullopt);
    if (out) take(std::move(*out));
    if (error) {
        ++counts_.failed_passes;
        // Nobody could renew a lease either: agents get a whole lease time from when it is back.
        if (error->kind == ErrorKind::unavailable) trusted_from_ = Steady::now() + times_.lease;
        if (!std::exchange(complained_, true)) log::warning("the queue can't be worked: " + error->text());
        co_return;
    }
    if (std::exchange(complained_, false)) log::info("the queue is worked again");
    if (finished_at_ == Steady::time_point{}) finished_at_ = Steady::now();
}

void Scheduler::take(PassOutput out) {
    said_ = std::move(out.said);
    counts_.granted += out.granted;
    counts_.retried += out.retried;
    counts_.overdue += out.overdue;
    counts_.silenced += out.silenced;
    counts_.ended += out.ended;
    counts_.cancelled += out.cancelled;
    for (const auto& line : out.log) log::info(line);
    for (auto& message : out.messages) links_.send(std::move(message));
    if (out.changed) changed_.notify_all();
}

} // namespace perfrig::queue
