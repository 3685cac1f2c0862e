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
    // full. It should own what it uses (captures by value) and is moved from:
    //     auto work = [&db, name] { return db.find(name); };
    //     PERFRIG_CO_TRY(auto row, co_await pool.run(work));
    // A closure written within the co_await is taken only if all its captures are trivial (references, numbers): GCC 12
    // copies such a temporary bit by bit and destroys its captures twice.
    template <class Work> auto run(Work&& work) {
        using Plain = std::decay_t<Work>;
        static_assert(std::is_lvalue_reference_v<Work> || std::is_trivially_destructible_v<Plain>,
                      "name it first: auto work = [...] {...}; co_await pool.run(work);");
        using Out = std::invoke_result_t<Plain&>;
        auto job = std::make_shared<Job<Plain, Out>>(std::move(work));
        return run_and_fetch<Out>(std::move(job));
    }

    std::size_t queued() const; // jobs that wait for a thread

  private:
    template <class Work, class Out> struct Job {
        explicit Job(Work&& w) : work(std::move(w)) {}
        explicit Job(const Work& w) : work(w) {}
        Work work;
        std::optional<Out> out;
    };
    template <class Out, class SharedJob> boost::asio::awaitable<Out> run_and_fetch(SharedJob job) {
        std::function<void()> call = [job] { job->out.emplace(job->work()); };
        PERFRIG_CO_CHECK(co_await run_job(std::move(call)));
        co_return std::move(*job->out);
    }
    boost::asio::awaitable<Result<void>> run_job(std::function<void()> call);
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace perfrig
