// One run event becomes the calls that store it. What can be stored in bulk (series, metrics) is handed out instead.
#pragma once

#include "common/protocol/run_event.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <string>

namespace perfrig::ingest {

struct Applied {
    bool ended = false;    // the run has ended by this event
    bool evidence = false; // it changes what the run's evaluation rests on
};

// Series and metrics are not for here. `actor` is for the audit trail ("agent/xeon").
Result<Applied> apply_event(db::Connection& c, model::Id machine, const protocol::RunEvent& event,
                            const std::string& actor);

Result<model::SeriesInfo> series_of(model::Id machine, const protocol::SeriesDeclared& declared);
model::Metric metric_of(const protocol::MetricRead& read);

} // namespace perfrig::ingest
