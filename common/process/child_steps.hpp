// The child's half of spawn(): what runs between fork and exec. Everything it needs was made before the fork; here are
// only async-signal-safe calls, because the forking program may have threads that hold malloc's lock.
#pragma once

#include "common/process/spawn.hpp"

#include <cstdint>

namespace perfrig::spawning {

constexpr std::size_t mask_words = 8192 / 64;
struct Mask {
    std::uint64_t words[mask_words] = {};
    explicit Mask(const CpuList& list);
};

enum class Step : int {
    session,
    cgroup,
    affinity,
    affinity_narrower, // the kernel gave fewer CPUs than asked
    memory_nodes,
    indirect_branch, // detail: the state read back
    store_bypass,
    user,
    privileges,
    processes,
    parent,
    descriptors,
    directory,
    program,
};

struct Report { // what comes through the pipe when a step failed
    Step step = Step::session;
    int error = 0;  // errno; 0 where only the state is wrong
    int detail = 0; // step by step
};

struct Plan {
    explicit Plan(const SpawnRequest& request);
    const SpawnRequest& request;
    const pid_t parent; // who forks
    Mask cpus;
    Mask memory_nodes;
    std::vector<std::string> candidates; // paths to try
    std::vector<const char*> candidate_texts;
    std::vector<std::string> environment_texts;
    std::vector<char*> argv;
    std::vector<char*> envp;
};

// Never returns: becomes the program, or reports and exits with 127.
[[noreturn]] void run_child(const Plan& plan, int report_fd);

} // namespace perfrig::spawning
