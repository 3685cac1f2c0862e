#include "controller/api/token_cache.hpp"

#include "common/base/hash.hpp"
#include "controller/db/tokens.hpp"

namespace perfrig::api {

namespace {

constexpr std::chrono::seconds remembered{5};
constexpr std::chrono::minutes remembered_without_database{60};
constexpr std::size_t most_entries = 10'000; // somebody who guesses must not fill the memory
constexpr std::size_t longest_token = 512;

} // namespace

boost::asio::awaitable<Result<std::optional<Caller>>> TokenCache::find(std::string token) {
    using Found = Result<std::optional<Caller>>;
    if (token.empty() || token.size() > longest_token) co_return Found(std::nullopt);
    const std::string hash = sha256_hex(token);
    const auto now = std::chrono::steady_clock::now();
    if (const auto at = entries_.find(hash); at != entries_.end() && now - at->second.asked < remembered)
        co_return Found(at->second.caller);
    auto job = [&pool = pool_, hash] { return pool.run([&](db::Connection& c) { return db::tokens::find(c, hash); }); };
    const auto found = co_await blocking_.run(job);
    if (!found) {
        // Without the database nobody can revoke a token either: who was good stays good, so that /metrics goes on.
        const auto at = entries_.find(hash);
        if (at != entries_.end() && at->second.caller && now - at->second.asked < remembered_without_database)
            co_return Found(at->second.caller);
        co_return found.error();
    }
    const auto& row = *found;
    std::optional<Caller> caller;
    if (row) caller = Caller{row->kind, hash, row->machine_id, row->machine_name, row->label};
    if (entries_.size() >= most_entries) entries_.clear();
    entries_[hash] = {caller, now};
    co_return Found(std::move(caller));
}

void TokenCache::forget(const std::string& hash_prefix) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first.starts_with(hash_prefix); });
}

void TokenCache::forget_machine(const std::string& name) {
    std::erase_if(entries_, [&](const auto& entry) {
        const auto& caller = entry.second.caller;
        return caller && caller->kind == model::TokenKind::agent && caller->machine == name;
    });
}

} // namespace perfrig::api
