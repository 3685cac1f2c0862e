// Plain summaries of a set of numbers. They say nothing (nullopt) where the statistic is not defined, instead of zero
// or NaN. Inputs must be finite; order does not matter.
#pragma once

#include <optional>
#include <span>

namespace perfrig {

std::optional<double> mean(std::span<const double> values); // of at least one value
// The quantile of a sample by linear interpolation between order statistics: h = (n - 1) p, the definition that
// Hyndman and Fan (1996) number 7 and that R and NumPy use by default. 0 <= p <= 1; of at least one value.
std::optional<double> quantile(std::span<const double> values, double p);
std::optional<double> median(std::span<const double> values); // quantile 0.5
// With Bessel's correction (n - 1); of at least two values.
std::optional<double> sample_standard_deviation(std::span<const double> values);
// Sample standard deviation over the mean's magnitude: a ratio, not percent; none when the mean is zero.
std::optional<double> coefficient_of_variation(std::span<const double> values);

} // namespace perfrig
