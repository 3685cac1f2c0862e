#include "agent/session/state_dir.hpp"

#include "common/base/file_tree.hpp"
#include "tests/unit/agent/session/spool_rig.hpp"

#include <sys/stat.h>
#include <unistd.h>

using namespace perfrig;
using perfrig::testing::TempFolder;

TEST_CASE("one agent per state directory: the second is told who holds it") {
    TempFolder folder;
    {
        const auto first = StateDir::lock(folder.path("state"));
        REQUIRE(first);
        const auto second = StateDir::lock(folder.path("state"));
        REQUIRE_FALSE(second);
        CHECK(second.error().kind == ErrorKind::conflict);
        CHECK(second.error().text().find("pid " + std::to_string(::getpid())) != std::string::npos);
    }
    CHECK(StateDir::lock(folder.path("state"))); // freed with its holder
}

TEST_CASE("the epoch counts starts and outlives them") {
    TempFolder folder;
    for (std::int64_t expected = 1; expected <= 3; ++expected)
        CHECK(StateDir::lock(folder.path("state")).value().next_epoch().value() == expected);
}

TEST_CASE("an epoch file that holds no number is refused, never counted from 1 again") {
    TempFolder folder;
    const auto state = StateDir::lock(folder.path("state"));
    REQUIRE(state);
    REQUIRE(write_file_atomically(state->file("epoch"), "rubbish"));
    CHECK_FALSE(state->next_epoch());
}

TEST_CASE("a lock that is another file in disguise is refused, and that file keeps its content") {
    TempFolder folder;
    REQUIRE(write_file_atomically(folder.path("precious"), "content"));
    for (const bool hard : {false, true}) {
        const std::string state = folder.path(hard ? "hard" : "soft");
        REQUIRE(::mkdir(state.c_str(), 0700) == 0);
        const int made = hard ? ::link(folder.path("precious").c_str(), (state + "/lock").c_str())
                              : ::symlink(folder.path("precious").c_str(), (state + "/lock").c_str());
        REQUIRE(made == 0);
        CHECK_FALSE(StateDir::lock(state));
        CHECK(read_file(folder.path("precious")).value() == "content");
    }
}
