// Who a token belongs to, remembered for a few seconds so that not every request asks the database. A token that is
// revoked is taken for that long at most, but a known one is taken on while the database can't be asked. Only hashes
// are kept. One executor.
#pragma once

#include "common/net/blocking_pool.hpp"
#include "controller/api/access.hpp"
#include "controller/db/pool.hpp"

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

namespace perfrig::api {

class TokenCache {
  public:
    TokenCache(db::Pool& pool, BlockingPool& blocking) : pool_(pool), blocking_(blocking) {}

    // None: no such token, or it was revoked. unavailable: the database can't be asked.
    boost::asio::awaitable<Result<std::optional<Caller>>> find(std::string token);
    // Revoked here: takes effect at once.
    void forget(const std::string& hash_prefix);
    void forget_machine(const std::string& name); // the agent's tokens of it

  private:
    struct Entry {
        std::optional<Caller> caller;
        std::chrono::steady_clock::time_point asked;
    };
    db::Pool& pool_;
    BlockingPool& blocking_;
    std::unordered_map<std::string, Entry> entries_; // by hash
};

} // namespace perfrig::api
