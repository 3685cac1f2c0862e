// Starting one process, with everything that must be true of it before its first instruction: session, cgroups,
// affinity, speculation, user, limits, signals, descriptors, directory. The child does these steps between fork and
// exec with async-signal-safe calls alone (so threaded programs may spawn), in this order, and reports the first that
// fails through a pipe: spawn() returns either a process that has exec'd, or what failed, exactly.
#pragma once

#include "common/base/cpu_list.hpp"
#include "common/base/result.hpp"
#include "common/process/speculation.hpp"
#include "common/process/users.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perfrig {

using Environment = std::vector<std::pair<std::string, std::string>>; // what the process gets, and nothing else

// The calling process's own environment, for commands that should inherit it.
Environment current_environment();

struct SpawnRequest {
    std::vector<std::string> argv; // argv[0]: a path with a slash, or a name looked up in PATH of `environment`
    Environment environment;
    std::string directory;   // "": the caller's
    int stdin_fd = -1;       // -1: /dev/null; the caller keeps its own descriptors
    int stdout_fd = -1;      // -1: /dev/null
    int stderr_fd = -1;      // -1: /dev/null
    bool new_session = true; // setsid: own session and process group; false: own process group only

    std::vector<int> cgroup_procs_fds;   // open cgroup.procs files to join, in this order
    std::optional<CpuList> cpus;         // sched_setaffinity; narrower than asked is a failure
    std::optional<CpuList> memory_nodes; // set_mempolicy(MPOL_BIND): for machines without a cpuset cgroup
    SpeculationAsk speculation;
    std::optional<User> user; // become this user for good; uid 0 is refused

    // prctl(PR_SET_NO_NEW_PRIVS): no program that it or its descendants execute gains rights by set-user-id or file
    // capabilities.
    bool no_new_privileges = false;
    // SIGKILL when the caller ends (PR_SET_PDEATHSIG): itself alone, not its descendants. The kernel watches the
    // *thread* that forked, so only for callers with one thread.
    bool die_with_parent = false;
    // RLIMIT_NPROC. The kernel counts every process and thread of the user, on the whole machine, not those of this
    // one.
    std::optional<std::int64_t> most_processes_of_user;
};

struct SpawnedProcess {
    pid_t pid = -1;
    std::int64_t start_ns = 0; // CLOCK_MONOTONIC, just before fork
};

// Error kinds: not_found (no such program or directory), bad_input (empty argv, CPUs that don't exist),
// forbidden (not executable, user, speculation refused), unavailable (the rest).
Result<SpawnedProcess> spawn(const SpawnRequest& request);

} // namespace perfrig
