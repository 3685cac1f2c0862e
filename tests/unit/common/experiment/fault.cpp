#include "common/experiment/fault.hpp"
#include "tests/support/doctest.hpp"

using namespace perfrig;

TEST_CASE("a fault prints as file, line, column, message and remedy") {
    const Fault fault{12, 5, "tools.wrk.conections", "unknown key 'conections' in tools.wrk",
                      "did you mean 'connections'?"};
    CHECK(fault.text("web.yaml") ==
          "web.yaml:12:5: unknown key 'conections' in tools.wrk (did you mean 'connections'?)");
    CHECK(Fault{0, 0, "", "too large", ""}.text("web.yaml") == "web.yaml: too large");
}

TEST_CASE("faults as JSON carry place, path, message and remedy") {
    const std::vector<Fault> faults{{3, 1, "name", "name is empty", "give it a value"}};
    CHECK(faults_to_json(faults) ==
          Json::parse(R"([{"line":3,"column":1,"path":"name","message":"name is empty","remedy":"give it a value"}])"));
}

TEST_CASE("faults are put in order of place, and repeats go") {
    const Fault late{9, 1, "b", "x", ""}, early{2, 7, "a", "x", ""}, other{9, 1, "b", "y", ""};
    CHECK(in_order({late, early, other, late}) == std::vector<Fault>{early, late, other});
}

TEST_CASE("a misspelt word finds the nearest known one, and a strange one finds none") {
    const std::vector<std::string> known{"connections", "threads", "url", "timeout"};
    CHECK(nearest_word("conections", known) == "connections");
    CHECK(nearest_word("thraeds", known) == "threads"); // a swap counts one
    CHECK(nearest_word("ulr", known) == "url");
    CHECK(nearest_word("time_out", known) == "timeout");
    CHECK(nearest_word("zebra", known).empty());
    CHECK(nearest_word("ab", std::vector<std::string>{"xy"}).empty()); // two changes, but nothing shared
    CHECK(nearest_word(std::string(100'000, 'c'), known).empty());
    CHECK(nearest_word("", known).empty());
}
