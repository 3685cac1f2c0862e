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

std::string aligned(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& lines,
                    const std::function<std::string(std::size_t)>& colour) {
    std::vector<std::size_t> widths;
    for (const std::string& name : header) widths.push_back(width_of(name));
    for (const auto& line : lines)
        for (std::size_t i = 0; i < line.size() && i < widths.size(); ++i)
            widths[i] = std::max(widths[i], width_of(line[i]));
    const auto print = [&](const std::vector<std::string>& cells, bool is_header) {
        std::string out;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::size_t room = i < widths.size() ? widths[i] - std::min(widths[i], width_of(cells[i])) : 0;
            const bool right = !is_header && is_number(cells[i]);
            if (i) out += "  ";
            if (right)
                out += std::string(room, ' ') + cells[i];
            else
                out += cells[i] + (i + 1 == cells.size() ? "" : std::string(room, ' '));
        }
        return out;
    };
    std::string out = print(header, true) + "\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string on = colour ? colour(i) : "";
        out += on + print(lines[i], false) + (on.empty() ? "" : "\x1b[0m") + "\n";
    }
    return out;
}

std::string readable_number(double value, std::string_view unit) {
    if (unit == "seconds") value *= 1e3;
    if (unit == "ratio") value *= 100;
    if (!std::isfinite(value)) return "-";
    const double size = std::fabs(value);
    char text[64];
    if (size >= 1000 && size < 1e15) {
        std::snprintf(text, sizeof text, "%.0f", value);
        return with_thousands(text);
    }
    const int decimals = size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
    if (size != 0 && size < 0.001)
        std::snprintf(text, sizeof text, "%.3e", value);
    else
        std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

std::string readable_unit(std::string_view unit) {
    if (unit == "seconds") return "ms";
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
