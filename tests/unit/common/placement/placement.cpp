#include "common/placement/placement.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;

namespace {
CpuList cpus(const char* text) { return CpuList::parse(text).value(); }

Topology eight_cpus_two_offline() {
    Topology t;
    t.possible = cpus("0-15");
    t.present = cpus("0-7");
    t.online = cpus("0-5");
    t.offline = cpus("6-15");
    return t;
}
} // namespace

TEST_CASE("grants on online CPUs of their own have no faults") {
    const auto faults = check_placement({{"app", cpus("0-2")}, {"load", cpus("3-5")}}, {}, eight_cpus_two_offline());
    CHECK(faults.empty());
    CHECK(placement_is_possible(faults));
}

TEST_CASE("CPUs that don't exist or are offline are refused with role, list and what the machine has") {
    const auto faults = check_placement({{"app", cpus("0,6,9")}}, {}, eight_cpus_two_offline());
    REQUIRE(faults.size() == 2);
    CHECK(faults[0].kind == PlacementFaultKind::no_such_cpu);
    CHECK(faults[0].cpus.text() == "9");
    CHECK(faults[0].message ==
          "role 'app' is granted CPUs 0,6,9, but the machine has no CPU 9: it has 0-7, online 0-5");
    CHECK_FALSE(faults[0].remedy.empty());
    CHECK(faults[1].kind == PlacementFaultKind::offline_cpu);
    CHECK(faults[1].cpus.text() == "6");
    CHECK_FALSE(placement_is_possible(faults));
}

TEST_CASE("an empty grant is refused") {
    const auto faults = check_placement({{"db", {}}}, {}, eight_cpus_two_offline());
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].kind == PlacementFaultKind::empty_grant);
    CHECK(faults[0].refusal);
}

TEST_CASE("roles that overlap are refused unless one share group holds both, and then the run carries a finding") {
    const std::map<std::string, CpuList> roles = {{"app", cpus("0-2")}, {"db", cpus("2-3")}, {"load", cpus("3-4")}};
    const auto faults = check_placement(roles, {{"db", "load"}, {"app", "monitor"}}, eight_cpus_two_offline());
    REQUIRE(faults.size() == 2);
    CHECK(faults[0].kind == PlacementFaultKind::overlap);
    CHECK(faults[0].role == "app");
    CHECK(faults[0].other_role == "db");
    CHECK(faults[0].cpus.text() == "2");
    CHECK(faults[0].refusal);
    CHECK(faults[1].kind == PlacementFaultKind::shared);
    CHECK(faults[1].cpus.text() == "3");
    CHECK_FALSE(faults[1].refusal);
}

TEST_CASE("an affinity read back is inside, narrower or outside its grant") {
    CHECK(compare_affinity(cpus("0-3"), cpus("0-3")) == AffinityFit::inside);
    CHECK(compare_affinity(cpus("0-3"), cpus("2")) == AffinityFit::narrower);
    CHECK(compare_affinity(cpus("0-3"), cpus("3-4")) == AffinityFit::outside);
    CHECK(compare_affinity(cpus("0-3"), cpus("0-7")) == AffinityFit::outside);
    CHECK(compare_affinity(cpus("0-3"), {}) == AffinityFit::outside);
}
