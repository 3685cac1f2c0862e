#include "common/base/line_pattern.hpp"

#include <algorithm>
#include <regex>

namespace perfrig {

struct LinePattern::Compiled {
    std::regex regex;
    std::string begins; // every match begins with this text; may be empty
    bool at_line_start = false;

    // Cheap, and sure where it says no: a flood of lines must not cost a regular expression each.
    bool may_match(std::string_view line) const {
        return at_line_start ? line.starts_with(begins) : line.find(begins) != std::string_view::npos;
    }
};

namespace {

Error refuse(std::string_view text, std::string why, std::string remedy = {}) {
    return fail(ErrorKind::bad_input, "compile the pattern", std::string(text.substr(0, LinePattern::longest_pattern)),
                std::move(why), std::move(remedy));
}

// The upper ends of {n}, {n,} and {n,m} multiplied: libstdc++ copies the automaton that often.
int repeats(std::string_view text) {
    long product = 1;
    bool in_class = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\\') {
            ++i;
        } else if (in_class) {
            in_class = c != ']';
        } else if (c == '[') {
            in_class = true;
        } else if (c == '{') {
            long largest = 1;
            long number = 0;
            for (++i; i < text.size() && text[i] != '}'; ++i) {
                number = text[i] >= '0' && text[i] <= '9' ? number * 10 + (text[i] - '0') : 0;
                largest = std::max(largest, number);
                if (largest > LinePattern::largest_repeat) return LinePattern::largest_repeat + 1;
            }
            product *= largest;
            if (product > LinePattern::largest_repeat) return LinePattern::largest_repeat + 1;
        }
    }
    return static_cast<int>(product);
}

// libstdc++ reads the number of a back-reference without a bound before it refuses it: refused here first.
bool refers_back(std::string_view text) {
    for (std::size_t i = 0; i + 1 < text.size(); ++i)
        if (text[i] == '\\' && text[++i] >= '1' && text[i] <= '9') return true;
    return false;
}

// The plain characters that a pattern begins with, behind an optional ^. Empty where an alternative could begin
// otherwise.
std::string plain_beginning(std::string_view pattern) {
    if (pattern.find('|') != std::string_view::npos) return {};
    if (pattern.starts_with('^')) pattern.remove_prefix(1);
    const std::size_t end = std::min(pattern.find_first_of(".[]{}()*+?^$\\|"), pattern.size());
    std::string plain(pattern.substr(0, end));
    const bool last_is_repeated =
        end < pattern.size() && std::string_view("*?{").find(pattern[end]) != std::string_view::npos;
    if (last_is_repeated && !plain.empty()) plain.pop_back();
    return plain;
}

} // namespace

Result<LinePattern> LinePattern::compile(std::string_view text) {
    if (text.empty()) return refuse(text, "it is empty");
    if (text.find('\0') != std::string_view::npos) return refuse(text, "it has a NUL byte in it");
    if (text.size() > longest_pattern)
        return refuse(text, "it is longer than " + std::to_string(longest_pattern) + " bytes", "shorten it");
    if (repeats(text) > largest_repeat)
        return refuse(text, "its counted repeats multiply to more than " + std::to_string(largest_repeat),
                      "use + or *");
    if (refers_back(text)) return refuse(text, "it refers back to a group", "back-references are not supported");
    try {
        LinePattern result;
        result.text_ = std::string(text);
        auto compiled = std::make_shared<Compiled>();
        // From text that ends in a NUL: libstdc++'s scanner looks one character past a final "(" or backslash.
        compiled->regex.assign(result.text_.c_str(), result.text_.size(),
                               std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
        compiled->begins = plain_beginning(text);
        compiled->at_line_start = text.starts_with('^') && text.find('|') == std::string_view::npos;
        result.compiled_ = std::move(compiled);
        return result;
    } catch (const std::regex_error& e) { // the library reports by exception alone
        return refuse(text, e.what(), "use ECMAScript syntax");
    }
}

int LinePattern::groups() const { return static_cast<int>(compiled_->regex.mark_count()); }

bool LinePattern::matches(std::string_view line) const {
    return line.size() <= longest_line && compiled_->may_match(line) &&
           std::regex_search(line.begin(), line.end(), compiled_->regex);
}

std::optional<std::string_view> LinePattern::capture(std::string_view line) const {
    if (line.size() > longest_line || !compiled_->may_match(line)) return std::nullopt;
    std::match_results<std::string_view::const_iterator> match;
    if (!std::regex_search(line.begin(), line.end(), match, compiled_->regex)) return std::nullopt;
    if (match.size() < 2 || !match[1].matched) return std::string_view{};
    return line.substr(static_cast<std::size_t>(match.position(1)), static_cast<std::size_t>(match.length(1)));
}

} // namespace perfrig
