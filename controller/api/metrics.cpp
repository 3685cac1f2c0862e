#include "controller/api/metrics.hpp"

namespace perfrig::api {

namespace {

const prometheus::Histogram::BucketBoundaries bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                     0.1,   0.25,   0.5,   1,    2.5,   10};

} // namespace

Metrics::Metrics()
    : requests_(prometheus::BuildCounter()
                    .Name("perfrig_http_requests_total")
                    .Help("Requests answered, by the route's path and the status.")
                    .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("perfrig_http_request_seconds")
                   .Help("Time to answer, by the route's path; long polls wait on purpose.")
                   .Register(registry_)) {}

void Metrics::count_request(std::string_view method, std::string_view route, int status, double seconds) {
    requests_.Add({{"method", std::string(method)}, {"route", std::string(route)}, {"status", std::to_string(status)}})
        .Increment();
    seconds_.Add({{"route", std::string(route)}}, bounds).Observe(seconds);
}

} // namespace perfrig::api
