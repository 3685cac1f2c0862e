#include "common/metrics/exposition.hpp"
#include "common/metrics/coverage.hpp"

#include "tests/support/doctest.hpp"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

using namespace perfrig;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

namespace {

ClientMetric gauge(std::vector<ClientMetric::Label> labels, double value) {
    ClientMetric m;
    m.label = std::move(labels);
    m.gauge.value = value;
    m.counter.value = value;
    return m;
}

std::vector<MetricFamily> families() {
    MetricFamily counter{"perfrig_switches_total",
                         "Switches\nby \\ kind",
                         MetricType::Counter,
                         {gauge({{"kind", "voluntary"}}, 3), gauge({{"kind", "a\"b\\c\nd"}}, 1e300)}};
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
    MetricFamily odd{"perfrig_odd_ratio",
                     "Odd numbers",
                     MetricType::Gauge,
                     {gauge({{"x", "3"}}, nan), gauge({{"x", "2"}}, infinite), gauge({{"x", "1"}}, -infinite)}};
    ClientMetric h;
    h.histogram = {5, 7.5, {{2, 0.1}, {4, 1}}};
    MetricFamily histogram{"perfrig_wait_seconds", "Waiting", MetricType::Histogram, {h}};
    ClientMetric s;
    s.summary = {2, 3, {{0.5, 1}, {0.99, 2}}};
    MetricFamily summary{"perfrig_size_bytes", "Sizes", MetricType::Summary, {s}};
    MetricFamily empty{"perfrig_nothing", "Nobody home", MetricType::Gauge, {}};
    return {counter, odd, histogram, summary, empty};
}

} // namespace

TEST_CASE("families come out sorted, escaped, with help and type") {
    const std::string text = write_exposition(families());
    CHECK(text ==
          "# HELP perfrig_odd_ratio Odd numbers\n# TYPE perfrig_odd_ratio gauge\n"
          "perfrig_odd_ratio{x=\"1\"} -Inf\nperfrig_odd_ratio{x=\"2\"} +Inf\nperfrig_odd_ratio{x=\"3\"} NaN\n"
          "# HELP perfrig_size_bytes Sizes\n# TYPE perfrig_size_bytes summary\n"
          "perfrig_size_bytes{quantile=\"0.5\"} 1\nperfrig_size_bytes{quantile=\"0.99\"} 2\n"
          "perfrig_size_bytes_sum 3\nperfrig_size_bytes_count 2\n"
          "# HELP perfrig_switches_total Switches\\nby \\\\ kind\n# TYPE perfrig_switches_total counter\n"
          "perfrig_switches_total{kind=\"a\\\"b\\\\c\\nd\"} 1e+300\nperfrig_switches_total{kind=\"voluntary\"} 3\n"
          "# HELP perfrig_wait_seconds Waiting\n# TYPE perfrig_wait_seconds histogram\n"
          "perfrig_wait_seconds_bucket{le=\"0.1\"} 2\nperfrig_wait_seconds_bucket{le=\"1\"} 4\n"
          "perfrig_wait_seconds_bucket{le=\"+Inf\"} 5\nperfrig_wait_seconds_sum 7.5\nperfrig_wait_seconds_count 5\n");
}

TEST_CASE("names that no scraper would take are a bug") {
    const std::vector<MetricFamily> bad_metric = {{"2fast", "", MetricType::Gauge, {gauge({}, 1)}}};
    CHECK_THROWS(write_exposition(bad_metric));
    const std::vector<MetricFamily> bad_label = {{"fast", "", MetricType::Gauge, {gauge({{"a-b", "1"}}, 1)}}};
    CHECK_THROWS(write_exposition(bad_label));
}

TEST_CASE("promtool accepts the text") {
    if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
        MESSAGE("skipped: promtool is not installed");
        return;
    }
    FILE* promtool = ::popen("promtool check metrics", "w");
    REQUIRE(promtool != nullptr);
    const std::string text = write_exposition(families());
    CHECK(std::fwrite(text.data(), 1, text.size(), promtool) == text.size());
    CHECK(::pclose(promtool) == 0);
}

TEST_CASE("coverage is the threads' share of the process total, and unknown where nothing ran") {
    const CounterSpan threads[] = {{1.0, 2.0}, {0.0, 0.5}};
    const CounterSpan processes[] = {{10.0, 12.0}};
    const Coverage c = cpu_coverage(threads, processes);
    REQUIRE(c.ratio);
    CHECK(*c.ratio == doctest::Approx(0.75));
    const CounterSpan idle[] = {{10.0, 10.01}};
    CHECK_FALSE(cpu_coverage(threads, idle).ratio);
}
