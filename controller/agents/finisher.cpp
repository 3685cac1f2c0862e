#include "controller/agents/finisher.hpp"

#include "common/base/log.hpp"
#include "controller/db/runs.hpp"
#include "controller/ingest/ingest.hpp"

namespace perfrig::agents {

namespace {

constexpr Milliseconds look_every{5'000};
constexpr Milliseconds finish_within{120'000};
constexpr int most_tries = 5;

} // namespace

Finisher::Finisher(boost::asio::any_io_executor executor, db::Pool& pool, BlockingPool& blocking,
                   std::function<void()> finished)
    : pool_(pool), blocking_(blocking), finished_(std::move(finished)), woken_(executor) {}

void Finisher::add(model::Id run) {
    waiting_.insert(run);
    woken_.notify_all();
}

void Finisher::stop() {
    stopping_ = true;
    woken_.notify_all();
}

boost::asio::awaitable<void> Finisher::run() {
    while (!stopping_) {
        bool well = true;
        if (waiting_.empty()) well = co_await look_for_unsealed();
        while (well && !stopping_ && !waiting_.empty()) well = co_await finish(*waiting_.begin());
        if (!stopping_ && (!well || waiting_.empty())) co_await woken_.wait(Deadline::in(look_every));
    }
}

boost::asio::awaitable<bool> Finisher::look_for_unsealed() {
    auto found = co_await blocking_.run(
        [&pool = pool_] { return pool.run([](db::Connection& c) { return db::runs::unsealed(c, 100); }); });
    if (!found) co_return false; // the scheduler says that the database is gone
    for (const auto run : *found)
        if (tries_[run] < most_tries) waiting_.insert(run);
    co_return true;
}

// False: the database is gone, try again later.
boost::asio::awaitable<bool> Finisher::finish(model::Id run) {
    auto done = co_await blocking_.run([&pool = pool_, run] {
        return pool.run(Deadline::in(finish_within), [run](db::Connection& c) { return ingest::finish_run(c, run); });
    });
    if (!done && done.error().kind == ErrorKind::unavailable) co_return false;
    waiting_.erase(run);
    if (!done) {
        ++failed_count_;
        log::error("run " + std::to_string(run) + " can't be finished (try " + std::to_string(++tries_[run]) + " of " +
                   std::to_string(most_tries) + "): " + done.error().text());
        if (tries_[run] < most_tries) co_return true;
        // Its submission must not wait for ever for what can't be done.
        auto job = [&pool = pool_, run, why = done.error().text()] {
            return pool.run([&](db::Connection& c) { return ingest::give_up_run(c, run, why); });
        };
        const auto given_up = co_await blocking_.run(job);
        if (given_up)
            tries_.erase(run);
        else
            --tries_[run]; // asked again with the next look
        finished_();
        co_return true;
    }
    ++finished_count_;
    tries_.erase(run);
    finished_();
    co_return true;
}

} // namespace perfrig::agents
