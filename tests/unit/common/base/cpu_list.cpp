#include "common/base/cpu_list.hpp"

#include "tests/support/doctest.hpp"

using perfrig::CpuList;

TEST_CASE("a CPU list prints in the shortest form whatever form it was written in") {
    CHECK(CpuList::parse("0,1,2,3,8").value().text() == "0-3,8");
    CHECK(CpuList::parse("8,0-3").value().text() == "0-3,8");
    CHECK(CpuList::parse("0-8:2").value().text() == "0,2,4,6,8");
    CHECK(CpuList::parse("").value().empty());
    CHECK(CpuList::parse_kernel("0-1\n").value().text() == "0-1");
}

TEST_CASE("every bad form of a CPU list is refused with the reason") {
    for (const char* text : {"3-1",     "0-",    "-1",    "1,,2", "9999", "99999999999999999999",
                             " 0",      "0 ",    "0\n",   "0x3",  "ff",   ",",
                             "0,",      "1-2-3", "0-8:0", "3:2",  "1,1",  "0-3,2",
                             "0-8:2/4", "+1",    "1.5"}) {
        INFO(text);
        const auto parsed = CpuList::parse(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().kind == perfrig::ErrorKind::bad_input);
        CHECK_FALSE(parsed.error().why.empty());
        CHECK_FALSE(parsed.error().remedy.empty());
    }
}

TEST_CASE("set operations on CPU lists") {
    const CpuList a{0, 1, 2, 3}, b{2, 3, 4};
    CHECK(a.both(b).text() == "2-3");
    CHECK(a.either(b).text() == "0-4");
    CHECK(a.without(b).text() == "0-1");
    CHECK(a.contains_all(CpuList{0, 3}));
    CHECK_FALSE(a.contains_all(b));
}
