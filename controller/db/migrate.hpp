// Brings the tables to the shape this program knows: numbered SQL files, each applied once, in one transaction under
// an advisory lock, its checksum kept. A file that changed after it was applied, or a database that a newer program has
// migrated further, is refused with the remedy; nothing is changed then. Several programs may start at once.
#pragma once

#include "controller/db/connection.hpp"

#include <span>
#include <string>
#include <vector>

namespace perfrig::db {

struct Migration {
    int number = 0;   // 1, 2, 3 ... without gaps
    std::string name; // "0001_initial.sql"
    std::string sql;
};

std::vector<Migration> embedded_migrations(); // schemas/migrations/*.sql

// Returns the numbers that were applied now.
Result<std::vector<int>> migrate(Connection& connection, std::span<const Migration> migrations);
Result<std::vector<int>> migrate(Connection& connection); // the embedded ones

} // namespace perfrig::db
