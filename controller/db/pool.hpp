// Connections for worker threads that may block (common/net's BlockingPool): a job takes one, works and gives it back.
// Broken ones are replaced when they are next needed, so PostgreSQL may go and come back at any time; meanwhile a job
// gets `unavailable` at once where connecting is refused, and at its deadline at the latest.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/db/transaction.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace perfrig::db {

struct PoolOptions {
    ConnectionOptions connection;
    std::size_t size = 4;
    Milliseconds job_within{30'000}; // for a job that names no deadline: waiting for a connection included
};

class Pool {
  public:
    explicit Pool(PoolOptions options); // connects lazily
    ~Pool();                            // all connections must have been given back
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // work: Connection& -> Result<T>, called once.
    //   auto machines = pool.run([](db::Connection& c) { return db::machines::list(c); });
    template <class Work> auto run(Work&& work) { return run(default_deadline(), std::forward<Work>(work)); }
    template <class Work> std::invoke_result_t<Work&, Connection&> run(Deadline deadline, Work&& work) {
        PERFRIG_TRY(Borrowed borrowed, take(deadline));
        return work(*borrowed.connection);
    }

    // work in one transaction, committed where it returns a value; called again (at most 5 times, within the deadline)
    // where the server asks for that (serialization failure, deadlock), so it must have no other effects.
    template <class Work> auto run_in_transaction(Work&& work) {
        return run_in_transaction(default_deadline(), std::forward<Work>(work));
    }
    template <class Work> std::invoke_result_t<Work&, Connection&> run_in_transaction(Deadline deadline, Work&& work) {
        PERFRIG_TRY(Borrowed borrowed, take(deadline));
        Connection& connection = *borrowed.connection;
        for (int attempt = 1;; ++attempt) {
            auto out = once(connection, work);
            if (out || attempt == 5 || !worth_retrying(connection) || deadline.passed()) return out;
        }
    }

    std::size_t idle() const;
    std::size_t size() const { return options_.size; }

  private:
    struct Borrowed {
        Pool* pool = nullptr;
        std::unique_ptr<Connection> connection;
        Borrowed(Pool* from, std::unique_ptr<Connection> one) : pool(from), connection(std::move(one)) {}
        Borrowed(Borrowed&& other) noexcept
            : pool(std::exchange(other.pool, nullptr)), connection(std::move(other.connection)) {}
        Borrowed& operator=(Borrowed&&) = delete;
        ~Borrowed() {
            if (pool) pool->give_back(std::move(connection));
        }
    };

    template <class Work> static std::invoke_result_t<Work&, Connection&> once(Connection& connection, Work& work) {
        PERFRIG_TRY(Transaction transaction, Transaction::begin(connection));
        auto out = work(connection);
        if (out) PERFRIG_CHECK(transaction.commit());
        return out;
    }
    Deadline default_deadline() const { return Deadline::in(options_.job_within); }
    Result<Borrowed> take(Deadline deadline);
    void give_back(std::unique_ptr<Connection> connection);

    PoolOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable freed_;
    std::vector<std::unique_ptr<Connection>> idle_;
    std::size_t out_ = 0; // connections in use, or slots for one
};

} // namespace perfrig::db
