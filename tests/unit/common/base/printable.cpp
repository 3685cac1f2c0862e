// What comes from outside can't steer a terminal.
#include "common/base/printable.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace std::string_view_literals;

TEST_CASE("text without anything that steers a terminal stays as it is") {
    for (const auto text : {""sv, "plain"sv, "two\n\tlines"sv, "Gr\u00fc\u00dfe \u20ac \U0001F600 \u00a0"sv})
        CHECK(printable(text) == text);
}

TEST_CASE("no byte below a blank but tab and line feed, and no C1 control, comes through in whatever form") {
    for (int code = 0; code < 256; ++code) {
        const std::string raw(1, static_cast<char>(code));
        const std::string shown = printable("a" + raw + "b");
        CAPTURE(code);
        if (code == '\t' || code == '\n' || (code >= 0x20 && code < 0x7f)) {
            CHECK(shown == "a" + raw + "b");
        } else {
            CHECK(shown.size() == 6);
            CHECK(shown.substr(0, 3) == "a\\x");
        }
    }
    CHECK(printable("\x1b]0;owned\x07") == "\\x1b]0;owned\\x07");
    CHECK(printable("\xc2\x9b"
                    "31m") == "\\u009b31m"); // CSI as a character of UTF-8
    CHECK(printable("\xe2\x80\xae"
                    "txt") == "\\u202etxt"); // right to left from here
    CHECK(printable("a\0b"sv) == "a\\x00b");
}

TEST_CASE("what is not UTF-8 is shown byte by byte") {
    CHECK(printable("\xc3(") == "\\xc3(");
    CHECK(printable("\xe2\x82") == "\\xe2\\x82");
    CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");          // overlong
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80"); // half of a surrogate pair
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("a line of the log stays one line") { CHECK(printable("one\ntwo\r", Lines::escape) == "one\\ntwo\\x0d"); }

TEST_CASE("a text is cut between its characters, never within one") {
    CHECK(beginning_of("plain", 9) == "plain");
    CHECK(beginning_of("plain", 3) == "pla");
    const std::string text = "a\u00e4\u20ac\U0001f600"; // of 1, 2, 3 and 4 bytes
    const std::size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (std::size_t most = 0; most < std::size(whole); ++most) {
        CAPTURE(most);
        CHECK(beginning_of(text, most) == std::string_view(text).substr(0, whole[most]));
    }
}
