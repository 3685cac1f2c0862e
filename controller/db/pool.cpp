#include "controller/db/pool.hpp"

#include <algorithm>

namespace perfrig::db {

Pool::Pool(PoolOptions options) : options_(std::move(options)) {
    options_.size = std::max<std::size_t>(options_.size, 1);
}

Pool::~Pool() = default;

Result<Pool::Borrowed> Pool::take(Deadline deadline) {
    std::unique_ptr<Connection> connection;
    {
        std::unique_lock lock(mutex_);
        const bool free = freed_.wait_until(lock, deadline.when(), [&] { return out_ < options_.size; });
        if (!free)
            return fail(ErrorKind::unavailable, "get a connection to PostgreSQL", "",
                        "all " + std::to_string(options_.size) + " stayed busy until the deadline",
                        "try again; more connections are configured by the pool's size");
        ++out_;
        if (!idle_.empty()) {
            connection = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    Borrowed borrowed(this, std::move(connection)); // gives the slot back on every way out
    if (!borrowed.connection || !borrowed.connection->still_there()) {
        borrowed.connection.reset();
        ConnectionOptions options = options_.connection;
        options.connect_within = std::min(options.connect_within, std::max(deadline.left(), Milliseconds(1)));
        PERFRIG_TRY(borrowed.connection, Connection::open(options));
    }
    borrowed.connection->set_deadline(deadline);
    return borrowed;
}

void Pool::give_back(std::unique_ptr<Connection> connection) {
    const bool usable = connection && !connection->broken() && connection->depth() == 0;
    {
        const std::lock_guard lock(mutex_);
        --out_;
        if (usable) idle_.push_back(std::move(connection));
    }
    freed_.notify_one();
}

std::size_t Pool::idle() const {
    const std::lock_guard lock(mutex_);
    return idle_.size();
}

} // namespace perfrig::db
