// Runs as the stores select them.
#pragma once

#include "controller/db/rows.hpp"
#include "controller/model/run.hpp"

#include <string>

namespace perfrig::db {

// "select ... from run r join ... " to be followed by a where clause; `resolved` may be large.
const std::string& select_runs(bool with_resolved);
model::Run run_from(const Rows& rows, int i);

} // namespace perfrig::db
