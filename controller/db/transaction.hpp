// A transaction that is rolled back where it ends unless commit() was called. Within another one on the same
// connection it is a savepoint: stores open one wherever they need atomicity, and callers join several in one.
#pragma once

#include "controller/db/connection.hpp"

namespace perfrig::db {

class Transaction {
  public:
    static Result<Transaction> begin(Connection& connection);
    Transaction(Transaction&& other) noexcept;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction(); // rolls back unless committed

    // Where the connection is lost during an outermost commit, whether it happened is unknown: the error is unavailable
    // and callers must be able to do the same again (every writer here is idempotent or checks).
    Result<void> commit();
    Connection& connection() const { return *connection_; }

  private:
    Transaction(Connection& connection, int depth) : connection_(&connection), depth_(depth) {}
    Connection* connection_;
    int depth_; // 1: the real one; deeper: savepoints
};

} // namespace perfrig::db
