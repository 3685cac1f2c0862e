// What the helper's tests share: a helper of their own in a folder of its own, and looking for processes by a mark in
// their command lines.
#pragma once

#include "agent/helper/descendants.hpp"
#include "agent/helper/start.hpp"
#include "common/base/hash.hpp"
#include "common/process/run_command.hpp"
#include "tests/support/doctest.hpp"

#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace perfrig::test {

inline Deadline soon() { return Deadline::in(Milliseconds(30'000)); }
inline bool is_root() { return ::geteuid() == 0; }

// Waits for a condition that another process brings about; false when it never holds.
template <class Condition> bool eventually(Condition condition) {
    const auto deadline = soon();
    while (!condition()) {
        if (deadline.passed()) return false;
        std::this_thread::sleep_for(Milliseconds(5));
    }
    return true;
}

struct Folder {
    std::string path;
    Folder() {
        char name[] = "/tmp/perfrig-test-XXXXXX";
        path = ::mkdtemp(name);
        ::chmod(path.c_str(), 0755);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { static_cast<void>(run_command({"rm", "-rf", path}, soon())); }
};

inline HelperConfig config_in(const std::string& folder, bool use_cgroups = true) {
    HelperConfig config;
    config.state_directory = folder + "/state";
    config.work_base = folder + "/work";
    config.agent_user = "54321:54321";
    config.workload_user = "nobody";
    config.use_cgroups = use_cgroups;
    return config;
}

struct Bench {
    Folder folder;
    HelperConfig config;
    Result<HelperClient> client;
    explicit Bench(bool use_cgroups = true) : config(config_in(folder.path, use_cgroups)), client(fork_helper(config)) {
        REQUIRE(client);
    }
    ~Bench() { client = fail(ErrorKind::internal, "", "", "closed"); } // before its folder goes
};

// Long-lived processes carry a mark that no other test uses.
inline std::string new_mark() {
    return "999" + std::to_string(::getpid()) + std::to_string(std::stoul(random_hex(3), nullptr, 16));
}

inline std::vector<pid_t> marked(const std::string& mark) {
    const FileTree tree;
    std::vector<pid_t> found;
    for (const auto& process : all_processes(tree)) {
        if (process.state == 'Z' || process.pid == ::getpid()) continue;
        const auto text = tree.read("/proc/" + std::to_string(process.pid) + "/cmdline");
        if (text && text->find(mark) != std::string::npos) found.push_back(process.pid);
    }
    return found;
}
inline bool none_left(const std::string& mark) {
    return eventually([&] { return marked(mark).empty(); });
}

inline SpawnOrder order(std::vector<std::string> argv, const std::string& name = "app") {
    SpawnOrder o;
    o.name = name;
    o.role = "app";
    o.argv = std::move(argv);
    o.environment = {{"PATH", "/usr/bin:/bin"}};
    return o;
}

// A shell that leaves a daemon behind: forked twice, in a session of its own, its parent gone.
inline SpawnOrder daemon_order(const std::string& mark) {
    return order({"sh", "-c", "(setsid sh -c 'sleep " + mark + " & sleep " + mark + "' &) ; exit 0"}, "daemon");
}
inline bool daemon_runs(const std::string& mark) {
    return eventually([&] { return marked(mark).size() >= 3; }); // the inner shell and its two sleeps
}

// What a process of the run prints, and how it ended.
struct Outcome {
    Spawned spawned;
    std::string out;
    ProcessExited exited;
};
inline Outcome outcome_of(RunGuard& guard, SpawnOrder o) {
    Outcome outcome;
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    o.stdout_fd = o.stderr_fd = to.get();
    const auto spawned = guard.spawn(o, soon());
    REQUIRE(spawned);
    to.reset();
    char chunk[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), chunk, sizeof chunk)) > 0;)
        outcome.out.append(chunk, static_cast<std::size_t>(n));
    auto exited = guard.next_event(soon());
    while (exited && exited->pid != spawned->pid) exited = guard.next_event(soon()); // of another process
    REQUIRE(exited);
    outcome.spawned = *spawned;
    outcome.exited = *exited;
    return outcome;
}

inline CpuList own_cpus() {
    cpu_set_t set;
    CHECK(::sched_getaffinity(0, sizeof set, &set) == 0);
    CpuList list;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) list.add(i);
    return list;
}

// The process above the helper.
inline pid_t warden_of(pid_t helper) {
    const auto stat = read_process_stat(FileTree(), helper);
    REQUIRE(stat);
    return stat->parent;
}

// The children of a process that bear a name (comm).
inline std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> found;
    for (const auto& process : all_processes(FileTree()))
        if (process.parent == parent && process.state != 'Z') found.push_back(process.pid);
    return found;
}

} // namespace perfrig::test
