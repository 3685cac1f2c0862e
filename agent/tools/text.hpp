// Small readers of printed text, shared by the parsers of this folder. Each takes exactly what it says: trailing
// rubbish after a number is no number.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace perfrig::text {

inline std::string_view trim(std::string_view s) {
    constexpr std::string_view blank = " \t\r\v\f";
    const auto first = s.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return s.substr(first, s.find_last_not_of(blank) - first + 1);
}

// Lines without their ends ("\n" or "\r\n"), a byte-order mark at the start dropped; empty lines are kept.
inline std::vector<std::string_view> lines(std::string_view s) {
    if (s.starts_with("\xEF\xBB\xBF")) s.remove_prefix(3);
    std::vector<std::string_view> result;
    while (!s.empty()) {
        const auto end = s.find('\n');
        auto line = s.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        result.push_back(line);
        if (end == std::string_view::npos) break;
        s.remove_prefix(end + 1);
    }
    return result;
}

// Fields separated by blanks.
inline std::vector<std::string_view> words(std::string_view s) {
    std::vector<std::string_view> result;
    for (s = trim(s); !s.empty(); s = trim(s)) {
        const auto end = s.find_first_of(" \t");
        result.push_back(s.substr(0, end));
        if (end == std::string_view::npos) break;
        s.remove_prefix(end);
    }
    return result;
}

// If s starts with prefix, removes it and says true.
inline bool take(std::string_view& s, std::string_view prefix) {
    if (!s.starts_with(prefix)) return false;
    s.remove_prefix(prefix.size());
    return true;
}

// A finite decimal number, the whole of s. "nan", "inf", "0x1", "+1" are none.
inline std::optional<double> number(std::string_view s) {
    double value = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (error != std::errc{} || end != s.data() + s.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

// The same, also with thousands grouped by commas as printf's ' flag does: "10,000,000". "1,5" is none.
inline std::optional<double> grouped_number(std::string_view s) {
    if (s.starts_with('+')) s.remove_prefix(1);
    if (s.find(',') == std::string_view::npos) return number(s);
    char digits[40];
    std::size_t n = 0;
    std::size_t group = 0; // digits since the start or the last comma
    bool first = true;
    const auto point = std::min(s.find('.'), s.size());
    for (std::size_t i = 0; i < s.size(); ++i) {
        const char c = s[i];
        if (i <= point && (c == ',' || c == '.')) {
            if (first ? group == 0 || group > 3 : group != 3) return std::nullopt;
            first = false;
            group = 0;
        } else if (c != '-') {
            ++group;
        }
        if (c == ',' && i < point) continue;
        if (n == sizeof(digits)) return std::nullopt;
        digits[n++] = c;
    }
    if (point == s.size() && group != 3) return std::nullopt;
    return number({digits, n});
}

// A whole number that is not negative, the whole of s.
inline std::optional<std::uint64_t> whole(std::string_view s) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
    return value;
}

// What C's printf writes for a number that is none: nan, -nan, inf, -inf, in any case.
inline bool no_number(std::string_view s) {
    if (s.starts_with('-') || s.starts_with('+')) s.remove_prefix(1);
    if (s.size() != 3) return false;
    const auto is = [&](const char* w) {
        for (int i = 0; i < 3; ++i)
            if ((s[static_cast<std::size_t>(i)] | 0x20) != w[i]) return false;
        return true;
    };
    return is("nan") || is("inf");
}

// The number at the start of s and what follows it.
inline bool leading_number(std::string_view& s, double& value) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || !std::isfinite(value)) return false;
    s.remove_prefix(static_cast<std::size_t>(end - s.data()));
    return true;
}

} // namespace perfrig::text
