#include "common/base/units.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

namespace perfrig {

namespace {

struct Unit {
    std::string_view name;
    double factor;
};

Result<double> parse_quantity(std::string_view text, std::span<const Unit> units, std::string tried,
                              std::string known) {
    const std::string shown = "'" + std::string(text.substr(0, 40)) + "'";
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number))
        return fail(ErrorKind::bad_input, tried, shown, "it does not begin with a number", known);
    if (number < 0 || text.starts_with('-')) return fail(ErrorKind::bad_input, tried, shown, "it is negative", known);
    const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
    if (name.empty()) {
        if (number == 0) return 0.0;
        return fail(ErrorKind::bad_input, tried, shown, "the unit is missing", known);
    }
    for (const Unit& unit : units)
        if (unit.name == name) return number * unit.factor;
    return fail(ErrorKind::bad_input, tried, shown, "unknown unit '" + std::string(name) + "'", known);
}

constexpr Unit time_units[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},  {"s", 1e9},
                               {"m", 6e10}, {"min", 6e10}, {"h", 3.6e12}};
constexpr Unit size_units[] = {{"B", 1},           {"kB", 1e3},           {"MB", 1e6},
                               {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
                               {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr double longest_ns = 366.0 * 24 * 3.6e12;

// The length of the first quantity in "1m30s": up to where the next number begins.
std::size_t first_quantity(std::string_view text) {
    const std::size_t number = text.starts_with('-') ? 1 : 0; // refused later, in its own words
    const std::size_t unit = std::min(text.find_first_not_of("0123456789.", number), text.size());
    return std::min(text.find_first_of("0123456789.", unit), text.size());
}

} // namespace

Result<Nanoseconds> parse_duration(std::string_view text) {
    constexpr const char *tried = "read the duration", *remedy = "write for example 30s, 500ms, 2m, 1m30s or 1h";
    const std::string shown = "'" + std::string(text.substr(0, 40)) + "'";
    double ns = 0, last = std::numeric_limits<double>::infinity();
    for (std::string_view rest = text; !rest.empty() || text.empty();) {
        const std::size_t length = first_quantity(rest);
        PERFRIG_TRY(const double part, parse_quantity(rest.substr(0, length), time_units, tried, remedy));
        if (part >= last)
            return fail(ErrorKind::bad_input, tried, shown, "its parts must go from large to small", remedy);
        ns += last = part;
        rest.remove_prefix(length);
    }
    if (ns > longest_ns) return fail(ErrorKind::bad_input, tried, shown, "it is longer than a year", remedy);
    return Nanoseconds(std::llround(ns));
}

Result<std::uint64_t> parse_size(std::string_view text) {
    PERFRIG_TRY(const double bytes,
                parse_quantity(text, size_units, "read the size", "write for example 512MiB, 4GiB or 10kB"));
    if (bytes > 9e18)
        return fail(ErrorKind::bad_input, "read the size", "'" + std::string(text.substr(0, 40)) + "'",
                    "it is too large");
    return static_cast<std::uint64_t>(std::llround(bytes));
}

std::string format_duration(Nanoseconds time) {
    const std::int64_t ns = time.count();
    const auto scaled = [&](double factor, const char* unit) {
        char text[32];
        std::snprintf(text, sizeof text, "%.4g%s", static_cast<double>(ns) / factor, unit);
        return std::string(text);
    };
    if (ns < 1'000) return std::to_string(ns) + "ns";
    if (ns < 1'000'000) return scaled(1e3, "us");
    if (ns < 1'000'000'000) return scaled(1e6, "ms");
    if (ns < 60'000'000'000) return scaled(1e9, "s");
    const std::int64_t seconds = ns / 1'000'000'000;
    std::string out;
    if (seconds >= 3600) out += std::to_string(seconds / 3600) + "h";
    if (seconds % 3600 / 60) out += std::to_string(seconds % 3600 / 60) + "m";
    if (seconds % 60) out += std::to_string(seconds % 60) + "s";
    return out;
}

} // namespace perfrig
