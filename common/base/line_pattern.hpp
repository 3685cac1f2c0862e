// A regular expression that comes from an experiment file and is held against single lines of a program's output:
// bounded in every direction, since neither the pattern nor the text can be trusted.
//
// ECMAScript syntax without back-references. The matcher is the breadth-first one of libstdc++: polynomial in the
// line's length, where the usual one is exponential for patterns like (a+)+b and recurses once a character.
#pragma once

#include "common/base/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace perfrig {

class LinePattern {
  public:
    static constexpr std::size_t longest_pattern = 256; // bytes
    static constexpr std::size_t longest_line = 2048;   // bytes; longer lines never match
    static constexpr int largest_repeat = 1000;         // product of all counted repeats: {3}, {1,20} ...

    // Refuses what is no regular expression, and what is over the bounds above.
    static Result<LinePattern> compile(std::string_view text);

    int groups() const;                        // capture groups
    bool matches(std::string_view line) const; // anywhere in the line
    // What the first group captured; empty text when it took no part in the match.
    std::optional<std::string_view> capture(std::string_view line) const;
    const std::string& text() const { return text_; }

  private:
    struct Compiled;
    std::shared_ptr<const Compiled> compiled_;
    std::string text_;
};

} // namespace perfrig
