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
    return !text.empty() && text.find_first_not_of("0123456789.,-+e \xc2\xb1") == std::string_view::npos; // and "±"
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

int decimals_of(double value) {
    const double size = std::fabs(value);
    if (size == 0 || !std::isfinite(size)) return 0;
    // 9.996 reads "10.0" and not "10.00": the digits are counted after rounding.
    const int before = static_cast<int>(std::floor(std::log10(size * (1 + 0.5e-3)))) + 1;
    return std::max(0, 3 - before);
}

std::string readable_number(double value, int decimals) {
    if (!std::isfinite(value)) return "-";
    const double size = std::fabs(value);
    char text[400];
    if (size >= 1e15 || (size != 0 && decimals > 6)) {
        std::snprintf(text, sizeof text, "%.2e", value);
        return text;
    }
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    const std::string_view all(text);
    const std::size_t point = std::min(all.find('.'), all.size());
    return with_thousands(std::string(all.substr(0, point))) + std::string(all.substr(point));
}

std::string readable_number(double value) { return readable_number(value, decimals_of(value)); }

Scale scale_of(std::span<const double> values, std::string_view unit) {
    if (unit == "ratio") return {100, "%"};
    if (unit != "s") return {1, std::string(unit)};
    static const Scale steps[] = {{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}};
    double least = 0, most = 0; // but zeros
    for (const double value : values) {
        const double size = std::fabs(value);
        if (size == 0 || !std::isfinite(size)) continue;
        least = least == 0 ? size : std::min(least, size);
        most = std::max(most, size);
    }
    std::size_t step = 0;
    while (step + 1 < std::size(steps) && least != 0 && least * steps[step].factor < 0.9995) ++step;
    while (step > 0 && most * steps[step].factor >= 1e5) --step;
    return steps[step];
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
