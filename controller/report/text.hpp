// Small pieces of text output: aligned columns, numbers with units as people read them, escaping.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::report {

// Columns padded to equal width by displayed characters (UTF-8), numbers to the right, headers wrapped at blanks.
// `colour` gives an escape sequence for line i or "" (reset follows it by itself).
std::string aligned(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& lines,
                    const std::function<std::string(std::size_t)>& colour = {});

// Four significant digits in the unit of readable_unit: seconds as ms, ratios as they are.
std::string readable_number(double value, std::string_view unit);
std::string readable_unit(std::string_view unit);  // "s" -> "ms", "ratio" -> "%", others as they are
std::string csv_field(std::string_view text);      // quoted where RFC 4180 asks for it
std::string xml_text(std::string_view text);       // for attributes and text; control characters replaced
std::string progress_bar(double share, int width); // "####----"

} // namespace perfrig::report
