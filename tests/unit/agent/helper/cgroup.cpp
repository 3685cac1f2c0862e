#include "agent/helper/cgroup.hpp"

#include "agent/helper/run_cgroups.hpp"
#include "common/process/child.hpp"
#include "tests/unit/agent/helper/support.hpp"

using namespace perfrig;
using namespace perfrig::test;

namespace {

// A tree with the files that plans are made from.
struct Machine {
    Folder folder;
    FileTree tree{folder.path};
    void put(const std::string& path, const std::string& text) const {
        const std::string real = folder.path + path;
        REQUIRE(run_command({"mkdir", "-p", real.substr(0, real.rfind('/'))}, soon()));
        REQUIRE(write_file_atomically(real, text));
    }
    CgroupPlan plan(const std::vector<int>& ours = {}) const { return plan_cgroups(tree, "/var/lib/perfrig", ours); }
};

const char* const unified_mount = "25 23 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

void put_v2(const Machine& machine, const std::string& own, const std::string& procs, const std::string& controllers) {
    machine.put("/proc/self/mountinfo", unified_mount);
    machine.put("/proc/self/cgroup", "0::" + own + "\n");
    machine.put("/proc/sys/kernel/osrelease", "6.12.0-55.el10\n");
    machine.put("/sys/fs/cgroup/cgroup.procs", "");
    machine.put("/sys/fs/cgroup/cgroup.controllers", controllers);
    machine.put("/sys/fs/cgroup" + own + "/cgroup.procs", procs);
    machine.put("/sys/fs/cgroup" + own + "/cgroup.controllers", controllers);
    machine.put("/sys/fs/cgroup" + own + "/cgroup.events", "populated 1\n");
    machine.put("/sys/fs/cgroup" + own + "/cgroup.kill", "");
}

} // namespace

TEST_CASE("a machine without cgroups is said to have none") {
    const Machine machine;
    const auto plan = machine.plan();
    CHECK(plan.kill == CgroupKill::none);
    CHECK(plan.cpuset == CgroupCpuset::none);
    CHECK(plan.why.find("no cgroup hierarchy is mounted") != std::string::npos);
    CHECK(plan.base_name.size() == 16);
    CHECK(plan.base_name.starts_with("perfrig-"));
}

TEST_CASE("a delegated service of its own uses its own cgroup, and moves its processes to a leaf") {
    const Machine machine;
    put_v2(machine, "/system.slice/perfrig-agent.service", "100\n101\n", "cpuset cpu memory\n");
    const auto plan = machine.plan({100, 101});
    CHECK(plan.kill == CgroupKill::v2);
    CHECK(plan.cpuset == CgroupCpuset::v2);
    CHECK(plan.move_self);
    CHECK(plan.kill_parent == "/sys/fs/cgroup/system.slice/perfrig-agent.service");
    CHECK(plan.enable_from == plan.kill_parent);
}

TEST_CASE("in a session shared with others the root of the hierarchy is used") {
    const Machine machine;
    put_v2(machine, "/user.slice/session-3.scope", "100\n999\n", "cpuset cpu memory\n");
    const auto plan = machine.plan({100});
    CHECK(plan.cpuset == CgroupCpuset::v2);
    CHECK_FALSE(plan.move_self);
    CHECK(plan.kill_parent == "/sys/fs/cgroup");
}

TEST_CASE("without the cpuset controller v2 still ends runs, and the plan says what is missing") {
    const Machine machine;
    put_v2(machine, "/x", "100\n", "memory pids\n");
    const auto plan = machine.plan({100});
    CHECK(plan.kill == CgroupKill::v2);
    CHECK(plan.cpuset == CgroupCpuset::none);
    CHECK(plan.kill_parent == "/sys/fs/cgroup/x");
    CHECK(plan.why.find("has no cpuset controller") != std::string::npos);
}

TEST_CASE("a hybrid machine ends runs by v2 and pins by v1, before 5.14 by freezer and v1") {
    const Machine machine;
    machine.put("/proc/self/mountinfo",
                "30 25 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
                "33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                "34 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
                "37 31 0:33 /docker/abc /sys/fs/cgroup/fre\\040ezer rw,relatime - cgroup cgroup rw,freezer\n"
                "41 31 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    machine.put("/proc/self/cgroup",
                "7:freezer:/docker/abc/sub\n6:cpu,cpuacct:/a\n3:cpuset:/a/b\n1:name=systemd:/\n0::/\n");
    machine.put("/sys/fs/cgroup/unified/cgroup.procs", "");
    machine.put("/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
    machine.put("/sys/fs/cgroup/cpuset/a/b/cgroup.procs", "");
    machine.put("/sys/fs/cgroup/fre ezer/sub/cgroup.procs", "");
    machine.put("/proc/sys/kernel/osrelease", "6.18.44\n");
    auto plan = machine.plan();
    CHECK(plan.kill == CgroupKill::v2);
    CHECK(plan.kill_parent == "/sys/fs/cgroup/unified");
    CHECK(plan.cpuset == CgroupCpuset::v1);
    CHECK(plan.cpuset_parent == "/sys/fs/cgroup/cpuset/a/b");
    for (const char* old : {"4.18.0-553.el8\n", "5.13.19\n"}) {
        machine.put("/proc/sys/kernel/osrelease", old);
        plan = machine.plan();
        CHECK(plan.kill == CgroupKill::freezer);
        CHECK(plan.kill_parent == "/sys/fs/cgroup/fre ezer/sub");
        CHECK(plan.cpuset == CgroupCpuset::v1);
    }
    machine.put("/proc/sys/kernel/osrelease", "5.14.0-570.el9\n");
    CHECK(machine.plan().kill == CgroupKill::v2);
}

TEST_CASE("broken mount and cgroup files are read as far as they make sense") {
    CHECK(parse_hierarchies("", "").empty());
    CHECK(parse_hierarchies("garbage\n1 2 3 - cgroup2\n", "0::/\n").empty());
    CHECK(parse_hierarchies(unified_mount, "::::\n0\n").empty());
    const auto outside = parse_hierarchies(unified_mount, "0::/../../x\n");
    REQUIRE(outside.size() == 1);
    CHECK(outside[0].own == "/sys/fs/cgroup");
}

TEST_CASE("every way of ending by cgroup that this machine has ends forking shells") {
    if (!is_root()) {
        MESSAGE("not root: cgroups can't be made; skipped");
        return;
    }
    const FileTree tree;
    const auto cgroup_file = tree.read("/proc/self/cgroup");
    const auto mounts = tree.read("/proc/self/mountinfo");
    REQUIRE(cgroup_file);
    REQUIRE(mounts);
    int tried = 0;
    for (const auto& hierarchy : parse_hierarchies(*mounts, *cgroup_file)) {
        const bool freezer = hierarchy.controllers == std::vector<std::string>{"freezer"};
        const bool loop =
            hierarchy.controllers == std::vector<std::string>{"pids"}; // neither kill nor freeze: one by one
        if (!hierarchy.v2 && !freezer && !loop) continue;
        CAPTURE(hierarchy.mount);
        CgroupPlan plan;
        plan.kill = hierarchy.v2 ? CgroupKill::v2 : CgroupKill::freezer;
        plan.kill_parent = hierarchy.mount;
        plan.base_name = "perfrig-test-" + std::to_string(::getpid());
        RunCgroups cgroups(tree, plan);
        cgroups.prepare({});
        REQUIRE(cgroups.plan().kill != CgroupKill::none);
        const RunName run{1, 1};
        REQUIRE(cgroups.make_run(run, 0));
        const auto made = cgroups.make_process(run, "app", {}, {});
        REQUIRE(made);
        REQUIRE(made->procs.size() == 1);
        CHECK(made->cpuset == CgroupCpuset::none);
        const std::string mark = new_mark();
        SpawnRequest request;
        request.argv = {"sh", "-c",
                        "f() { [ $1 -gt 0 ] || exec sleep " + mark + "; f $(($1-1)) & f $(($1-1)) & wait; }; f 6"};
        request.environment = {{"PATH", "/usr/bin:/bin"}};
        request.cgroup_procs_fds = {made->procs[0].get()};
        auto child = Child::start(request);
        REQUIRE(child);
        REQUIRE(eventually([&] { return marked(mark).size() > 10; }));
        CHECK(cgroups.runs() == std::vector<RunName>{run});
        const auto killed = cgroups.end_run(run, soon(), [] {});
        REQUIRE(killed);
        CHECK(*killed > 10);
        CHECK(none_left(mark));
        CHECK(cgroups.runs().empty());
        CHECK(cgroups.end_run(run, soon(), [] {})); // nothing left to do
        cgroups.remove_base();
        CHECK_FALSE(tree.exists(plan.kill_parent + "/" + plan.base_name));
        ++tried;
    }
    CHECK(tried > 0);
}

TEST_CASE("descent is followed through everything but what is spared, and circles are no trap") {
    const auto process = [](pid_t pid, pid_t parent) {
        ProcessStat p;
        p.pid = pid;
        p.parent = parent;
        return p;
    };
    const std::vector<ProcessStat> all = {process(2, 1), process(3, 2), process(4, 3), process(5, 2),
                                          process(6, 5), process(7, 8), process(8, 7), process(9, 1)};
    std::vector<pid_t> found;
    for (const auto& p : descendants_of(all, 2, {5})) found.push_back(p.pid);
    std::sort(found.begin(), found.end());
    CHECK(found == std::vector<pid_t>{3, 4});
    CHECK(descendants_of(all, 7, {}).size() == 1);
    const auto stat = parse_process_stat("42 (a) b (c) R 7 42 41 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 123456 1 2");
    REQUIRE(stat);
    CHECK(stat->pid == 42);
    CHECK(stat->state == 'R');
    CHECK(stat->parent == 7);
    CHECK(stat->session == 41);
    CHECK(stat->start_ticks == 123456);
    for (const char* broken :
         {"", "42", "42 (x", "42 (x) R", "x (x) R 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5", "42 (x) R 1 1 1 0"})
        CHECK_FALSE(parse_process_stat(broken));
    CHECK(read_process_stat(FileTree(), ::getpid())->parent == ::getppid());
}
