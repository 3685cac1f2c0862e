// live_frame and series_chunk are partitioned by ranges of run ids, so that retention can drop a whole range. The
// partitions that new runs need are made in the transaction that makes the runs, and one ahead.
#pragma once

#include "controller/db/connection.hpp"

namespace perfrig::db {

constexpr std::int64_t runs_per_partition = 10'000;

// Partitions for every run id in [first, last]; safe against others doing the same at the same time.
Result<void> ensure_partitions(Connection& connection, std::int64_t first_run, std::int64_t last_run);

} // namespace perfrig::db
