// What happened to a submission, its runs and its blocks, in order: what followers of a submission read.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <vector>

namespace perfrig::db::feed {

// Events with an id above `after`, by rising id. An event whose transaction commits late can get an id below one that
// was seen already; such a one is missed, so states are read beside the feed, not out of it.
Result<std::vector<model::Event>> of_submission(Connection& c, model::Id submission, std::int64_t after, int limit);

} // namespace perfrig::db::feed
