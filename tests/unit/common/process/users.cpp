#include "common/process/users.hpp"

#include "common/process/child.hpp"
#include "tests/support/doctest.hpp"

#include <sys/wait.h>
#include <unistd.h>

using namespace perfrig;

namespace {
constexpr std::string_view passwd = "root:x:0:0:root:/root:/bin/bash\n"
                                    "broken line\n"
                                    "bench:x:1001:1002:Bench,,,:/home/bench:/bin/sh\n"
                                    "nologin:x:70000:70000::/:/usr/sbin/nologin";
constexpr std::string_view group =
    "root:x:0:\nbench:x:1002:bench\ndisk:x:6:bench,other\naudio:x:29:other\nvideo:x:4:x,bench\n";
} // namespace

TEST_CASE("a user is found by name and by number, with the groups that list it") {
    for (const char* name : {"bench", "1001"}) {
        const auto user = find_user_in(passwd, group, name);
        REQUIRE(user);
        CHECK(user->name == "bench");
        CHECK(user->uid == 1001);
        CHECK(user->gid == 1002);
        CHECK(user->groups == std::vector<gid_t>{4, 6});
        CHECK(user->home == "/home/bench");
    }
    CHECK(find_user_in(passwd, group, "nologin")->uid == 70000);
}

TEST_CASE("a user that no file knows can be given as numbers, and nothing else") {
    const auto user = find_user_in(passwd, group, "5000:5001");
    REQUIRE(user);
    CHECK(user->uid == 5000);
    CHECK(user->gid == 5001);
    for (const char* name : {"nobody-here", "5000", "5000:", ":1", "a:b", "-1:0", "4294967295:1", ""})
        CHECK(!find_user_in(passwd, group, name));
}

TEST_CASE("privileges are dropped for good, and root is no user to drop to") {
    CHECK(!drop_privileges(User{"root", 0, 0, {}, "/"}));
    if (::geteuid() != 0) {
        MESSAGE("not root: nothing to drop; skipped");
        CHECK(!drop_privileges(User{"other", ::getuid() + 1, 1, {}, "/"}));
        return;
    }
    const pid_t child = ::fork(); // in a child: it is for good
    if (child == 0) {
        const auto dropped = drop_privileges(User{"other", 54321, 54322, {}, "/"});
        const bool good = dropped && ::getuid() == 54321 && ::getgid() == 54322 && ::setuid(0) != 0 &&
                          ::access("/proc/self/environ", R_OK) == 0;
        ::_exit(good ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
