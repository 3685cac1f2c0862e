// What /metrics says of the controller's parts, read at the scrape: plain counts as metric families.
#pragma once

#include "controller/api/services.hpp"

#include <map>
#include <prometheus/metric_family.h>
#include <string>
#include <vector>

namespace perfrig::api {

struct QueueDepth {
    std::map<std::string, std::int64_t> blocks, runs, machines; // by state; ended blocks and runs are left out
    std::int64_t oldest_pending_seconds = 0;
};
Result<QueueDepth> queue_depth(db::Connection& c);

void append_parts(std::vector<prometheus::MetricFamily>& families, const Services& services, const QueueDepth& depth,
                  bool database_up);

} // namespace perfrig::api
