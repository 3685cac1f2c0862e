#include "controller/analysis/little_law.hpp"
#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace perfrig::analysis;

TEST_CASE("requests under way are rate times mean latency") {
    CHECK(in_flight_ratio({10, 1'000, 0.01}).value() == doctest::Approx(1));
    CHECK(in_flight_ratio({10, 1'000, 0.005}).value() == doctest::Approx(0.5));
    CHECK(!in_flight_ratio({0, 1'000, 0.01}));
    CHECK(!in_flight_ratio({10, 0, 0.01}));
    CHECK(!in_flight_ratio({10, 1'000, 0}));
}

TEST_CASE("doubts begin a tenth above what can be, and a fifth below what should be") {
    CHECK(doubt_of({10, 1'000, 0.0109}).empty());
    CHECK(doubt_of({10, 1'000, 0.0112}).find("contradict") != std::string::npos);
    CHECK(doubt_of({10, 1'000, 0.0081}).empty());
    CHECK(doubt_of({10, 1'000, 0.0079}).find("without a request") != std::string::npos);
    CHECK(doubt_of({10, 0, 0.01}).empty());
}

TEST_CASE("a loop is made of what one tool says of itself as a whole") {
    const auto metric = [](const char* name, double value, model::Labels labels) {
        model::Metric out;
        out.name = name;
        out.value = value;
        out.labels = std::move(labels);
        return out;
    };
    const auto loops = closed_loops({metric("concurrency", 4, {{"tool", "a"}}),
                                     metric("transactions_per_second", 100, {{"tool", "a"}}),
                                     metric("transactions_per_second", 70, {{"tool", "a"}, {"script", "1"}}),
                                     metric("latency_seconds", 0.04, {{"tool", "a"}, {"stat", "mean"}}),
                                     metric("latency_seconds", 9, {{"tool", "a"}, {"quantile", "0.99"}}),
                                     metric("requests_per_second", 5, {{"tool", "b"}}),
                                     metric("latency_seconds", 1, {{"tool", "b"}, {"stat", "mean"}})});
    REQUIRE(loops.size() == 1);
    CHECK(in_flight_ratio(loops.at("a")).value() == doctest::Approx(1));
}
