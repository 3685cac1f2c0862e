// Small pieces of text output: aligned columns, numbers with units as people read them, escaping.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::report {

// Columns padded to equal width by displayed characters (UTF-8), numbers to the right, headers wrapped at blanks.
// `colour` gives an escape sequence for line i or "" (reset follows it by itself).
std::string aligned(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& lines,
                    const std::function<std::string(std::size_t)>& colour = {});

// A number for people: three significant digits, whole numbers whole, thousands parted ("15,690", "0.0312", "-").
std::string readable_number(double value);
std::string readable_number(double value, int decimals); // with so many digits behind the point
int decimals_of(double value);                           // of the first form

// In which unit all of these values of one SI unit are read best: seconds as ns, us, ms or s, ratios as %, others as
// they are. Times: the largest unit in which the least of them is at least 1 and, if that makes numbers of more than
// five digits, the next ones.
struct Scale {
    double factor = 1; // multiply by it
    std::string unit;
};
Scale scale_of(std::span<const double> values, std::string_view unit);

std::string csv_field(std::string_view text);      // quoted where RFC 4180 asks for it
std::string xml_text(std::string_view text);       // for attributes and text; control characters replaced
std::string progress_bar(double share, int width); // "####----"

} // namespace perfrig::report
