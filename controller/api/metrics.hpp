// The controller's own /metrics. Requests are counted in a registry; everything else is read from the parts' own counts
// at each scrape, the queue's depth from the database.
#pragma once

#include "controller/api/services.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <string>

namespace perfrig::api {

class Metrics {
  public:
    Metrics();
    // `route` is the table's path, never the request's: labels must not grow with what people ask for.
    void count_request(std::string_view method, std::string_view route, int status, double seconds);
    std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

  private:
    prometheus::Registry registry_;
    prometheus::Family<prometheus::Counter>& requests_;
    prometheus::Family<prometheus::Histogram>& seconds_;
};

} // namespace perfrig::api
