// Tokens: only their hashes are stored, and only hashes come in here (SHA-256 of the token's text, hex).
#pragma once

#include "controller/db/connection.hpp"
#include "controller/model/machine.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace perfrig::db::tokens {

// `machine` is given for kind agent and for no other. Storing the same hash with the same meaning again changes
// nothing; with another meaning it is a conflict.
Result<void> create(Connection& c, std::string_view hash, model::TokenKind kind, std::string_view label,
                    model::Id machine = 0);
// None: unknown or revoked.
Result<std::optional<model::Token>> find(Connection& c, std::string_view hash);
Result<void> revoke(Connection& c, std::string_view hash);                            // not_found
Result<void> revoke_of_machine(Connection& c, model::Id machine);                     // every agent token of it
Result<std::vector<std::string>> hashes_of_machine(Connection& c, model::Id machine); // those not revoked
Result<std::vector<std::string>> scrape_hashes(Connection& c);                        // those not revoked
Result<std::vector<model::Token>> list(Connection& c);
Result<bool> any_of_kind(Connection& c, model::TokenKind kind); // not revoked

} // namespace perfrig::db::tokens
