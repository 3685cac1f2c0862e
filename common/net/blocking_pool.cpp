#include "common/net/blocking_pool.hpp"

#include <algorithm>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace perfrig {

namespace asio = boost::asio;

struct BlockingPool::State {
    explicit State(std::size_t most) : most_queued(most) {}
    const std::size_t most_queued;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> jobs;
    std::size_t idle_threads = 0;
    bool ending = false;
    std::vector<std::thread> threads;

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            ++idle_threads;
            changed.wait(lock, [this] { return ending || !jobs.empty(); });
            --idle_threads;
            if (jobs.empty()) return; // ending, and nothing left
            auto job = std::move(jobs.front());
            jobs.pop_front();
            lock.unlock();
            job();
            job = nullptr;
            lock.lock();
        }
    }

    bool add(std::function<void()> job) {
        const std::lock_guard lock(mutex);
        if (jobs.size() >= most_queued + idle_threads) return false; // an idle thread is about to take one
        jobs.push_back(std::move(job));
        changed.notify_one();
        return true;
    }
};

BlockingPool::BlockingPool(std::size_t threads, std::size_t most_queued)
    : state_(std::make_unique<State>(most_queued)) {
    for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i)
        state_->threads.emplace_back([state = state_.get()] { state->work(); });
}

BlockingPool::~BlockingPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->ending = true;
    }
    state_->changed.notify_all();
    for (auto& thread : state_->threads) thread.join();
}

std::size_t BlockingPool::queued() const {
    const std::lock_guard lock(state_->mutex);
    return state_->jobs.size();
}

asio::awaitable<Result<void>> BlockingPool::run_job(std::function<void()> call) {
    bool accepted = true;
    // The handler goes to the pool thread and comes back to the caller's executor by post(); the guard keeps that
    // executor running in between. No cancellation slot is used: a queued job can't be taken back.
    auto initiate = [&accepted, state = state_.get()](auto handler, std::function<void()> work) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        const auto executor = asio::get_associated_executor(*shared);
        auto guard = std::make_shared<asio::executor_work_guard<std::decay_t<decltype(executor)>>>(executor);
        auto job = [work = std::move(work), shared, executor, guard]() mutable {
            std::exception_ptr thrown;
            try {
                work();
            } catch (...) {
                thrown = std::current_exception();
            }
            // All that belongs to the caller leaves this thread: what the work captured ends before the caller goes
            // on, and handler and exception go home whole.
            work = nullptr;
            asio::post(executor, [handler = std::move(shared), thrown = std::move(thrown)]() mutable {
                std::move (*handler)(std::move(thrown));
            });
            guard.reset();
        };
        accepted = state->add(std::move(job));
        if (!accepted) asio::post(executor, [shared] { std::move (*shared)(std::exception_ptr()); });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(
        std::move(initiate), asio::use_awaitable, std::move(call));
    if (!accepted)
        co_return fail(ErrorKind::unavailable, "queue blocking work", "",
                       std::to_string(state_->most_queued) + " jobs are waiting already", "try again later");
    co_return Result<void>();
}

} // namespace perfrig
