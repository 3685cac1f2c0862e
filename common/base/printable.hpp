// Text from outside (names, reasons, what a program printed) on its way to a terminal or a log: whatever could move the
// cursor, change colours or forge a line is shown as its number instead of doing that.
#pragma once

#include <string>
#include <string_view>

namespace perfrig {

enum class Lines { keep, escape }; // line feeds stay, or become "\n" so that the text is one line

// Control characters (C0 but for tab, DEL, C1), bytes that are not UTF-8 and the characters that turn the direction of
// writing become \x1b or \u202e; everything else stays.
std::string printable(std::string_view text, Lines lines = Lines::keep);

// The beginning of a text, at most so many bytes of it, not cut within a character of UTF-8.
std::string_view beginning_of(std::string_view text, std::size_t most_bytes);

} // namespace perfrig
