#include "common/base/line_pattern.hpp"

#include "tests/support/doctest.hpp"

#include <regex>

using namespace perfrig;

TEST_CASE("looking for a pattern's plain beginning first never changes what matches") {
    const char* patterns[] = {"^up$", "up", "count (\\d+)", "^ab*c", "ab?c", "a{2}b", "x|^up",
                              "(up)", "^",  "[u]p",         "a+b",   "^a.c", "u\\.p", "ready$"};
    const char* lines[] = {"",     "up",  " up", "up ", "upup", "count 12", "a count 12", "abc", "ac",
                           "abbc", "aab", "ab",  "x",   "u.p",  "is ready", "ready.",     "axc"};
    for (const char* pattern : patterns) {
        const auto compiled = LinePattern::compile(pattern);
        REQUIRE(compiled);
        for (const char* line : lines) {
            INFO(pattern, " against '", line, "'");
            CHECK(compiled->matches(line) == std::regex_search(line, std::regex(pattern)));
            CHECK(compiled->capture(line).has_value() == std::regex_search(line, std::regex(pattern)));
        }
    }
}

TEST_CASE("a pattern that refers back to a group is refused before the library reads the number") {
    for (const char* pattern :
         {"(a)\\1", "\\9", "(a)\\33333333333333333333333333333333", "[\\7777777777777777777777777]"}) {
        INFO(pattern);
        const auto compiled = LinePattern::compile(pattern);
        REQUIRE_FALSE(compiled);
        CHECK(compiled.error().text().find("back") != std::string::npos);
    }
    CHECK(LinePattern::compile("\\\\1")); // a backslash, and a 1
    CHECK(LinePattern::compile("\\d1"));
}
