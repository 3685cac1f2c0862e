#include "common/stats/summary.hpp"
#include "tests/support/doctest.hpp"

#include <vector>

using namespace perfrig;

TEST_CASE("quantiles interpolate as type 7 does") {
    const std::vector<double> v{10, 1, 4, 2}; // the figures of R's quantile(c(10,1,4,2), type = 7)
    CHECK(*quantile(v, 0) == 1);
    CHECK(*quantile(v, 0.25) == doctest::Approx(1.75));
    CHECK(*quantile(v, 0.5) == doctest::Approx(3));
    CHECK(*quantile(v, 0.9) == doctest::Approx(8.2));
    CHECK(*quantile(v, 1) == 10);
    CHECK(*median(v) == doctest::Approx(3));
}

TEST_CASE("an undefined statistic is absent, not zero") {
    const std::vector<double> none, one{5}, zero_mean{-1, 1};
    CHECK(!mean(none));
    CHECK(!median(none));
    CHECK(*median(one) == 5);
    CHECK(!sample_standard_deviation(one));
    CHECK(!coefficient_of_variation(one));
    CHECK(!coefficient_of_variation(zero_mean));
    CHECK(!quantile(one, 1.5));
    CHECK(!quantile(one, -0.1));
}

TEST_CASE("the standard deviation divides by n - 1 and survives a large common offset") {
    const std::vector<double> v{1e9 + 2, 1e9 + 4, 1e9 + 4, 1e9 + 4, 1e9 + 5, 1e9 + 5, 1e9 + 7, 1e9 + 9};
    CHECK(*mean(v) == doctest::Approx(1e9 + 5));
    CHECK(*sample_standard_deviation(v) == doctest::Approx(2.13809).epsilon(1e-5));
    const std::vector<double> negative{-9, -11};
    CHECK(*coefficient_of_variation(negative) == doctest::Approx(0.141421).epsilon(1e-5));
}

TEST_CASE("the mean of huge values does not overflow") {
    const std::vector<double> v{1.7e308, 1.7e308, 1.7e308};
    CHECK(*mean(v) == doctest::Approx(1.7e308));
}
