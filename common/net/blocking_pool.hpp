// A few threads for calls that block (libpq above all), so that the event loop never does. The coroutine waits on its
// own executor; an exception of the work is thrown there. Jobs start in the order of the calls.
//
// A job can't be cancelled once it is queued: a timeout around run() waits for it, so the work must bound itself
// (statement_timeout, connect_timeout). Destroy the pool before the io_context whose coroutines it serves.
#pragma once

#include "common/base/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

namespace perfrig {

class BlockingPool {
  public:
    // At least one thread. At most `most_queued` jobs wait for one; more are refused.
    BlockingPool(std::size_t threads, std::size_t most_queued);
    ~BlockingPool(); // finishes what is queued, joins
    BlockingPool(const BlockingPool&) = delete;
    BlockingPool& operator=(const BlockingPool&) = delete;

    // `work` is called once on a pool thread and returns a Result<T>, which comes back; unavailable where the queue is
    // full. It owns what it uses (captures by value): auto rows = co_await pool.run([&db, id] { return db.run(id); });
    template <class Work> boost::asio::awaitable<std::invoke_result_t<Work&>> run(Work work) {
        using Out = std::invoke_result_t<Work&>;
        struct Job {
            Work work;
            std::optional<Out> out;
        };
        auto job = std::make_shared<Job>(Job{std::move(work), std::nullopt});
        std::function<void()> call = [job] { job->out.emplace(job->work()); };
        PERFRIG_CO_CHECK(co_await run_job(std::move(call)));
        co_return std::move(*job->out);
    }

    std::size_t queued() const; // jobs that wait for a thread

  private:
    boost::asio::awaitable<Result<void>> run_job(std::function<void()> call);
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace perfrig
