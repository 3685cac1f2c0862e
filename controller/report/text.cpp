#include "controller/report/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace perfrig::report {

namespace {

// Characters that take a place on the screen: UTF-8 continuation bytes do not.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.,-+e") == std::string_view::npos;
}

std::string with_thousands(std::string digits) {
    const bool negative = digits.starts_with('-');
    for (int at = static_cast<int>(digits.size()) - 3; at > (negative ? 1 : 0); at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

} // namespace

namespace {

// A header's words over as many lines as it takes to stay within `width` where its words allow it.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> lines(1);
    std::size_t start = 0;
    while (start <= text.size()) {
        const std::size_t blank = std::min(text.find(' ', start), text.size());
        const std::string word = text.substr(start, blank - start);
        start = blank + 1;
        if (lines.back().empty())
            lines.back() = word;
        else if (width_of(lines.back()) + 1 + width_of(word) <= width)
            lines.back() += " " + word;
        else
            lines.push_back(word);
    }
    return lines;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
    const std::string room(width - std::min(width, width_of(text)), ' ');
    return right ? room + text : text + room;
}

} // namespace

std::string aligned(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& lines,
                    const std::function<std::string(std::size_t)>& colour) {
    constexpr std::size_t header_width = 9; // narrower columns are not gained by wrapping further
    std::vector<std::size_t> widths(header.size());
    std::vector<bool> numbers(header.size(), !lines.empty());
    for (const auto& line : lines)
        for (std::size_t i = 0; i < line.size() && i < widths.size(); ++i) {
            widths[i] = std::max(widths[i], width_of(line[i]));
            if (!is_number(line[i])) numbers[i] = false;
        }
    std::vector<std::vector<std::string>> heads;
    std::size_t head_lines = 0;
    for (std::size_t i = 0; i < header.size(); ++i) {
        heads.push_back(wrapped(header[i], std::max(widths[i], header_width)));
        for (const std::string& line : heads.back()) widths[i] = std::max(widths[i], width_of(line));
        head_lines = std::max(head_lines, heads.back().size());
    }
    const auto print = [&](const auto& cell) {
        std::string out;
        for (std::size_t i = 0; i < header.size(); ++i) out += (i ? "  " : "") + padded(cell(i), widths[i], numbers[i]);
        while (out.ends_with(' ')) out.pop_back();
        return out;
    };
    std::string out;
    for (std::size_t line = 0; line < head_lines; ++line) {
        const std::size_t skip = head_lines - line; // headers stand on the line above the values
        out += print([&](std::size_t i) {
                   return heads[i].size() < skip ? std::string() : heads[i][heads[i].size() - skip];
               }) +
               "\n";
    }
    for (std::size_t line = 0; line < lines.size(); ++line) {
        const std::string on = colour ? colour(line) : "";
        out += on + print([&](std::size_t i) { return i < lines[line].size() ? lines[line][i] : std::string(); }) +
               (on.empty() ? "" : "\x1b[0m") + "\n";
    }
    return out;
}

std::string readable_number(double value, std::string_view unit) {
    if (unit == "s") value *= 1e3;
    if (unit == "ratio") value *= 100;
    if (!std::isfinite(value)) return "-";
    const double size = std::fabs(value);
    char text[64];
    if (size >= 1000 && size < 1e15) {
        std::snprintf(text, sizeof text, "%.0f", value);
        return with_thousands(text);
    }
    const int decimals = size >= 100                ? 1
                         : size >= 10               ? 2
                         : size >= 1                ? 3
                         : size >= 0.1 || size == 0 ? 4
                         : size >= 0.01             ? 5
                                                    : 6;
    if (size != 0 && (size < 0.001 || size >= 1e15))
        std::snprintf(text, sizeof text, "%.3e", value);
    else
        std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

std::string readable_unit(std::string_view unit) {
    if (unit == "s") return "ms";
    if (unit == "ratio") return "%";
    return std::string(unit);
}

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

std::string xml_text(std::string_view text) {
    std::string out;
    for (const char c : text) switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\n': out += "&#10;"; break;
        default: out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
        }
    return out;
}

std::string progress_bar(double share, int width) {
    const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
    return std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(width - full), '-');
}

} // namespace perfrig::report
