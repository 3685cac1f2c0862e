// What a run leaves outside of its directory is told, and removed where its user is the workloads' alone.
#include "tests/unit/agent/helper/support.hpp"

#include <sys/ipc.h>
#include <sys/shm.h>

using namespace perfrig;
using namespace perfrig::test;

namespace {

bool is_there(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0;
}

int shared_memory_of(uid_t uid) { // -1: none
    const auto text = FileTree().read("/proc/sysvipc/shm");
    REQUIRE(text);
    int count = 0;
    for (std::size_t at = text->find('\n') + 1; at < text->size(); at = text->find('\n', at) + 1) {
        std::string line = text->substr(at, text->find('\n', at) - at);
        long key = 0, id = 0, perms = 0, size = 0, cpid = 0, lpid = 0, attached = 0, owner = 0;
        if (std::sscanf(line.c_str(), "%ld %ld %lo %ld %ld %ld %ld %ld", &key, &id, (unsigned long*)&perms, &size,
                        &cpid, &lpid, &attached, &owner) == 8 &&
            owner == static_cast<long>(uid))
            ++count;
    }
    return count;
}

} // namespace

TEST_CASE(
    "files and System V memory that a run left are removed where its user is the workloads' own, links not followed") {
    if (!is_root()) {
        MESSAGE("only root can start workloads as a user of their own; skipped");
        return;
    }
    const Folder folder;
    HelperConfig config = config_in(folder.path);
    const uid_t uid = 54000 + static_cast<uid_t>(::getpid() % 300); // of this test alone
    config.workload_user = std::to_string(uid) + ":" + std::to_string(uid);
    auto client = fork_helper(config);
    REQUIRE(client);
    const std::string mark = new_mark(), tmp = "/tmp/perfrig-traces-" + mark;
    REQUIRE(::mkdir((tmp + "-old").c_str(), 0755) == 0); // was there before
    REQUIRE(::chown((tmp + "-old").c_str(), uid, uid) == 0);
    REQUIRE(run_command({"touch", folder.path + "/precious"}, soon()));
    auto guard = client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    REQUIRE(run_command({"touch", tmp + "-roots"}, soon())); // somebody else's, meanwhile
    const std::string leave = "mkdir -p " + tmp + "/a/b; echo x > " + tmp + "/a/b/c; ln -s " + folder.path + " " + tmp +
                              "/link; ln -s " + folder.path + "/precious " + tmp + "-link; chmod 0 " + tmp +
                              "/a; echo x > /dev/shm/perfrig-" + mark + "; echo x > " + tmp +
                              "-old/new; ipcmk -M 4096 >/dev/null";
    CHECK(outcome_of(*guard, order({"sh", "-c", leave})).out == "");
    CHECK(shared_memory_of(uid) == 1);
    CHECK(guard->end(soon()));
    const auto ended = client->end_run(1, true, soon());
    REQUIRE(ended);
    std::string all;
    for (const auto& trace : ended->traces) all += trace + "\n";
    CAPTURE(all);
    CHECK(ended->traces.size() == 4);
    for (const auto& path : {tmp, tmp + "-link", "/dev/shm/perfrig-" + mark}) {
        CHECK(all.find(path + " (removed)\n") != std::string::npos);
        CHECK_FALSE(is_there(path));
    }
    CHECK(all.find("System V shm ") != std::string::npos);
    CHECK(shared_memory_of(uid) == 0);
    CHECK(is_there(folder.path + "/precious"));
    CHECK(is_there(tmp + "-old"));
    CHECK(is_there(tmp + "-roots"));
    static_cast<void>(run_command({"rm", "-rf", tmp, tmp + "-old", tmp + "-roots"}, soon()));
    client = fail(ErrorKind::internal, "", "", "closed");
}

TEST_CASE("what a run left is told and stays where its user is not the workloads' alone") {
    Bench bench; // as nobody, or as whoever runs this test
    const std::string file = "/tmp/perfrig-traces-" + new_mark();
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    CHECK(outcome_of(*guard, order({"touch", file})).out == "");
    CHECK(guard->end(soon()));
    const auto ended = bench.client->end_run(1, true, soon());
    REQUIRE(ended);
    const auto told =
        std::find(ended->traces.begin(), ended->traces.end(), file + " (stays: its user is not perfrig's alone)");
    CHECK(told != ended->traces.end());
    CHECK(is_there(file));
    ::unlink(file.c_str());
}
