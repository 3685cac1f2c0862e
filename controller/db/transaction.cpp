#include "controller/db/transaction.hpp"

#include "common/base/log.hpp"

#include <utility>

namespace perfrig::db {

Result<Transaction> Transaction::begin(Connection& connection) {
    const int depth = connection.depth_ + 1;
    const std::string sql = depth == 1 ? "begin" : "savepoint nested_" + std::to_string(depth);
    PERFRIG_CHECK(connection.exec(sql.c_str()));
    connection.depth_ = depth;
    return Transaction(connection, depth);
}

Transaction::Transaction(Transaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)), depth_(other.depth_) {}

Transaction::~Transaction() {
    if (!connection_) return;
    connection_->depth_ = depth_ - 1;
    if (connection_->broken()) return;                   // the server rolls back by itself
    const std::string sqlstate = connection_->sqlstate_; // why it is rolled back, for whoever decides on a retry
    const std::string sql = depth_ == 1 ? "rollback" : "rollback to savepoint nested_" + std::to_string(depth_);
    if (const auto out = connection_->exec(sql.c_str()); !out) {
        connection_->broken_ = true; // in an unknown state: of no use any more
        log::warning(out.error().text());
    }
    connection_->sqlstate_ = sqlstate;
}

Result<void> Transaction::commit() {
    const std::string sql = depth_ == 1 ? "commit" : "release savepoint nested_" + std::to_string(depth_);
    PERFRIG_TRY(const Rows done, connection_->exec(sql.c_str()));
    connection_->depth_ = depth_ - 1;
    // The server answers a commit of a failed transaction with ROLLBACK and no error.
    const bool rolled_back = depth_ == 1 && done.command() == "ROLLBACK";
    connection_ = nullptr;
    if (rolled_back)
        return fail(ErrorKind::internal, "commit a transaction", "", "one of its statements had failed before",
                    "return that statement's error instead of committing");
    return {};
}

} // namespace perfrig::db
