#include "common/process/speculation.hpp"

#include "tests/support/doctest.hpp"

#include <cerrno>
#include <unistd.h>

using namespace perfrig;

namespace {
constexpr auto branch = SpeculationKind::indirect_branch;
SpeculationResult judged(SpeculationWish wish, int error, int state) {
    return judge_speculation(branch, wish, error, state).result;
}
} // namespace

TEST_CASE("each answer of the kernel to a speculation control has a meaning of its own") {
    using enum SpeculationWish;
    using enum SpeculationResult;
    CHECK(judged(force_disable, 0, 0x9) == applied);
    CHECK(judged(disable, 0, 0x5) == applied);
    CHECK(judged(enable, 0, 0x3) == applied);
    CHECK(judged(enable, 0, 0x2) == applied);    // enabled for everybody is what was asked for
    CHECK(judged(disable, 0, 0x4) == no_change); // strict modes: success, and it is so for everybody
    CHECK(judged(force_disable, 0, 0x4) == no_change);
    CHECK(judged(force_disable, 0, 0x3) == no_change);
    CHECK(judged(disable, 0, 0) == no_change); // not affected
    CHECK(judged(force_disable, EPERM, 0x2) == not_permitted);
    CHECK(judged(force_disable, ENXIO, 0x2) == not_possible);
    CHECK(judged(force_disable, ERANGE, 0x2) == not_valid);
    CHECK(judged(force_disable, ENODEV, -ENODEV) == unknown);
    CHECK(judged(force_disable, EINVAL, -EINVAL) == unknown);
    CHECK(judge_speculation(branch, force_disable, EPERM, 0x2).words.find("EPERM") != std::string::npos);
}

TEST_CASE("trying a control in a throw-away child leaves this process as it was") {
    for (const auto kind : {SpeculationKind::indirect_branch, SpeculationKind::store_bypass}) {
        const int before = get_speculation(kind);
        const auto verdict = probe_speculation(kind, SpeculationWish::force_disable);
        REQUIRE(verdict);
        CHECK_FALSE(verdict->words.empty());
        CHECK(get_speculation(kind) == before);
    }
}

TEST_CASE("the status lines are read raw, and a missing line is unknown") {
    const auto lines = parse_speculation_lines("Name:\tx\nSpeculation_Store_Bypass:\tthread vulnerable\n"
                                               "SpeculationIndirectBranch:\talways disabled\nCpus_allowed:\t3\n");
    CHECK(lines.store_bypass == "thread vulnerable");
    CHECK(lines.indirect_branch == "always disabled");
    CHECK_FALSE(parse_speculation_lines("Name:\tx\n").indirect_branch);
    CHECK(read_speculation_lines(FileTree(), ::getpid()));
}

TEST_CASE("a wish is read back from its own text, and another is refused") {
    for (const auto wish : {SpeculationWish::enable, SpeculationWish::disable, SpeculationWish::force_disable}) {
        const auto read = parse_speculation_wish(to_string(wish));
        REQUIRE(read);
        CHECK(*read == wish);
    }
    CHECK(!parse_speculation_wish("off"));
}
