#include "common/stats/summary.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace perfrig {

std::optional<double> mean(std::span<const double> values) {
    if (values.empty()) return std::nullopt;
    // The running form does not overflow and keeps its digits when a large offset is common to all values.
    double result = 0;
    double n = 0;
    for (const double v : values) result += (v - result) / ++n;
    return result;
}

std::optional<double> quantile(std::span<const double> values, double p) {
    if (values.empty() || !(p >= 0 && p <= 1)) return std::nullopt;
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    const double h = static_cast<double>(sorted.size() - 1) * p;
    const auto below = static_cast<std::size_t>(h);
    const auto above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], h - static_cast<double>(below));
}

std::optional<double> median(std::span<const double> values) { return quantile(values, 0.5); }

std::optional<double> sample_standard_deviation(std::span<const double> values) {
    if (values.size() < 2) return std::nullopt;
    const double centre = *mean(values);
    double sum = 0;
    for (const double v : values) sum += (v - centre) * (v - centre);
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::optional<double> coefficient_of_variation(std::span<const double> values) {
    const auto deviation = sample_standard_deviation(values);
    if (!deviation) return std::nullopt;
    const double centre = *mean(values);
    if (centre == 0) return std::nullopt;
    return *deviation / std::abs(centre);
}

} // namespace perfrig
