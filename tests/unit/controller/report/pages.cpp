#include "controller/report/pages.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;

namespace {

Json column(const char* key, const char* title, bool main) { return {{"key", key}, {"title", title}, {"main", main}}; }
Json group(const char* check, std::initializer_list<int> runs) {
    Json in = Json::array();
    for (const int run : runs) in.push_back({{"run", run}, {"message", "m"}});
    return {{"check", check}, {"severity", "warning"}, {"subject", "s"}, {"kind", "k"}, {"in", in}};
}
Json page(Json columns, Json rows, Json findings, int left_out) {
    return {{"columns", std::move(columns)},
            {"rows", std::move(rows)},
            {"findings", std::move(findings)},
            {"finding_groups_left_out", left_out}};
}

} // namespace

TEST_CASE("pages of results together say what one page of all cells would") {
    Json all = page({column("rate", "requests/s", true), column("other", "other{of=capacity}", false)}, {1, 2},
                    {group("cpu_other", {1})}, 1);
    report::add_page(all, page({column("rate", "rate", false), column("late", "late", true)}, {3},
                               {group("little_law", {3}), group("cpu_other", {3, 4})}, 2));
    report::add_page(all, page({column("other", "app used by others", true)}, {4, 5}, Json::array(), 0));

    REQUIRE(all["columns"].size() == 3);
    CHECK(all["columns"][0] == column("rate", "requests/s", true)); // shown once, shown always
    CHECK(all["columns"][1] == column("other", "app used by others", true));
    CHECK(all["columns"][2] == column("late", "late", true));
    CHECK(all["rows"] == Json{1, 2, 3, 4, 5});
    REQUIRE(all["findings"].size() == 2);
    CHECK(all["findings"][0] == group("cpu_other", {1, 3, 4}));
    CHECK(all["findings"][1] == group("little_law", {3}));
    CHECK(all["finding_groups_left_out"] == 3);
}
