// What nobody was left to end is found at the next start by what every process of a run is born with.
#include "agent/helper/cgroup.hpp"
#include "agent/helper/leftovers.hpp"
#include "tests/unit/agent/helper/support.hpp"

#include <filesystem>
#include <fstream>
#include <grp.h>

using namespace perfrig;
using namespace perfrig::test;

namespace {

constexpr uid_t plain_user = 54321;

// Does something as a user without rights in a process of its own; its exit code.
template <class Work> int as_plain_user(Work work) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (is_root() && (::setgroups(0, nullptr) != 0 || ::setresgid(plain_user, plain_user, plain_user) != 0 ||
                          ::setresuid(plain_user, plain_user, plain_user) != 0))
            ::_exit(100);
        ::_exit(work());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A recorded process.
void record(const std::string& root, pid_t pid, uid_t uid, const std::string& environment, const std::string& cwd,
            int terminal = 0) {
    const std::string folder = root + "/proc/" + std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/stat") << pid << " (x) S 1 " << pid << " " << pid << " " << terminal
                                    << " -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n";
    std::ofstream(folder + "/status") << "Name:\tx\nUid:\t" << uid << "\t" << uid << "\t" << uid << "\t" << uid << "\n";
    std::ofstream(folder + "/environ") << environment;
    std::filesystem::create_symlink(cwd, folder + "/cwd");
}

} // namespace

TEST_CASE(
    "a process of a run is known by its environment, else by its working folder, and nobody else's is taken for one") {
    const Folder folder;
    const std::string base = "/x/work";
    const auto environment = [](const std::string& value) {
        return std::string("A=1") + '\0' + "PERFRIG_RUN=" + value + '\0' + "B=2" + '\0';
    };
    record(folder.path, 101, 7, environment("/x/work/run-1-1"), "/");
    record(folder.path, 102, 7, "", "/x/work/run-2-1/below");
    record(folder.path, 103, 7, "", "/x/work/run-2-2 (deleted)");
    record(folder.path, 201, 8, environment("/x/work/run-1-1"), "/x/work/run-1-1"); // another user's
    record(folder.path, 202, 7, environment("/y/work/run-1-1"), "/");               // another agent's
    record(folder.path, 203, 7, environment("/x/work/run-1"), "/x/work");           // no run's name
    record(folder.path, 204, 7, "", "/x/work/run-2-1", 34816);                      // a person's shell
    record(folder.path, 205, 7, "NOT_PERFRIG_RUN=/x/work/run-1-1", "/x/workshop/run-2-1");
    record(folder.path, 206, 7, environment("/x/work/run-1-1"), "/"); // spared
    std::string found;
    for (const auto& one : find_leftovers(FileTree(folder.path), base, 7, {206}))
        found += std::to_string(one.process.pid) + ":" + one.run.text() + " ";
    CHECK(found == "101:run-1-1 102:run-2-1 103:run-2-2 ");
}

TEST_CASE("a workload that killed everything that watched it, without root, is ended by the next start's sweep") {
    for (const std::string hide : {"", "env -i "}) {
        CAPTURE(hide);
        const Folder folder;
        if (is_root()) REQUIRE(::chown(folder.path.c_str(), plain_user, plain_user) == 0);
        HelperConfig config = config_in(folder.path, false);
        const std::string mark = new_mark();
        const int killed = as_plain_user([&] {
            auto client = fork_helper(config);
            if (!client) return 1;
            auto guard = client->begin_run({1, 1}, soon());
            if (!guard) return 2;
            std::string all = std::to_string(::getpid());
            for (pid_t pid : {client->helper_pid(), children_of(client->helper_pid()).at(0),
                              read_process_stat(FileTree(), client->helper_pid())->parent})
                all += " " + std::to_string(pid);
            // A daemon of the daemon, in a session of which nobody took a note; the kill comes last, and from it.
            const std::string deep = "kill -STOP " + all + "; kill -KILL " + all + "; exec /bin/sleep " + mark;
            const std::string daemon = "(setsid sh -c '(" + hide + "setsid sh -c \"" + deep + "\" &)' &); sleep 1000";
            if (!guard->spawn(order({"sh", "-c", daemon}), soon())) return 3;
            for (;;) ::pause();
            return 0;
        });
        CHECK(killed == -SIGKILL);
        REQUIRE(eventually([&] { return marked(mark).size() == 1; }));
        CHECK(as_plain_user([&] {
                  auto client = fork_helper(config);
                  if (!client) return 1;
                  const auto report = client->sweep(true, soon());
                  return report && report->runs == std::vector<std::string>{"run-1-1"} && report->killed >= 1 ? 0 : 2;
              }) == 0);
        CHECK(marked(mark).empty());
        for (const pid_t pid : marked(mark)) ::kill(pid, SIGKILL);
    }
}

TEST_CASE("a sweep removes the empty cgroups that an earlier start of ours made in another place, and no one else's") {
    Bench bench;
    const CgroupPlan plan = plan_cgroups(bench.config.tree, bench.config.state_directory, {});
    std::vector<std::string> strays;
    for (const auto& parent : plan.parents)
        if (parent != plan.kill_parent && parent != plan.cpuset_parent && parent != plan.pids_parent)
            if (::mkdir((parent + "/" + plan.base_name).c_str(), 0755) == 0) strays.push_back(parent);
    if (strays.empty()) {
        MESSAGE("no other hierarchy can be written here; skipped");
        return;
    }
    REQUIRE(::mkdir((strays[0] + "/" + plan.base_name + "/run-9-1").c_str(), 0755) == 0);
    const std::string foreign = strays[0] + "/perfrig-test-" + std::to_string(::getpid());
    REQUIRE(::mkdir(foreign.c_str(), 0755) == 0);
    CHECK(bench.client->sweep(true, soon()));
    for (const auto& parent : strays) CHECK(::access((parent + "/" + plan.base_name).c_str(), F_OK) != 0);
    CHECK(::rmdir(foreign.c_str()) == 0);
}
