// What agent, helper and guardian say to each other: a closed list of verbs, each a JSON object of bounded size in one
// packet (SOCK_SEQPACKET), read strictly: an unknown verb or member, a wrong type, a value out of range is answered by
// an error and nothing is done.
#pragma once

#include "common/base/cpu_list.hpp"
#include "common/base/json.hpp"
#include "common/base/result.hpp"
#include "common/process/exit_status.hpp"
#include "common/process/spawn.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace perfrig {

using Message = Json;
constexpr std::size_t most_message_bytes = 128 * 1024;
constexpr std::size_t most_file_bytes = 1 << 20;

// One attempt at one run: "run-<id>-<attempt>" names its directory and cgroup. Both positive.
struct RunName {
    std::int64_t run_id = 0;
    std::int64_t attempt = 1;
    std::string text() const;
    friend auto operator<=>(const RunName&, const RunName&) = default;
};
std::optional<RunName> parse_run_name(std::string_view text);

struct SpawnOrder {
    std::string name; // within the run: [A-Za-z0-9_-][A-Za-z0-9._-]{0,63}; names its cgroup
    std::string role; // the same letters
    std::vector<std::string> argv;
    Environment environment; // exactly this, and PERFRIG_RUN (leftovers.hpp)
    std::string directory;   // "": the run's directory; relative: within it; or absolute
    CpuList cpus;            // the grant; empty: not pinned
    CpuList memory_nodes;    // empty: all
    SpeculationAsk speculation;
    int stdin_fd = -1; // -1: /dev/null; borrowed
    int stdout_fd = -1;
    int stderr_fd = -1;
};

struct Spawned {
    pid_t pid = -1;
    std::int64_t start_ns = 0;        // CLOCK_MONOTONIC
    std::string cpuset;               // "v1", "v2", or "none": by affinity alone
    std::string cpuset_why;           // where none: why
    std::vector<std::string> cgroups; // folders of this process's cgroups, absolute
    // The limit of processes and threads as read back, and what holds to it: "cgroup" (the run as a whole), "rlimit"
    // (RLIMIT_NPROC, which counts all of the user's, whoever started them), "none".
    std::int64_t most_processes = 0;
    std::string processes_by;
};

struct ProcessExited {
    pid_t pid = -1;
    std::string name;
    ExitStatus status;
    std::int64_t end_ns = 0; // CLOCK_MONOTONIC, when the guardian saw it
    double user_seconds = 0; // of the process and the descendants it waited for (wait4)
    double system_seconds = 0;
    std::uint64_t max_rss_bytes = 0;
};

struct RunEnded {
    std::int64_t killed = 0;            // processes that had to be killed, as far as they were seen one by one
    bool clean = true;                  // nothing is left, cgroup removed
    std::string why;                    // where not clean
    std::int64_t refused_processes = 0; // how often the run was refused a process or thread for its limit
    std::vector<std::string> traces;    // what it left outside of processes, each with what became of it
};

struct SweepReport {
    std::vector<std::string> runs; // names of the runs whose leftovers were ended
    std::int64_t killed = 0;
};

struct RunLost {
    RunName run;
    std::string why; // "its guardian was ended by signal 9 (Killed)"
};

struct HelperFacts {
    bool privileged = false;
    std::string workload_user; // name; the agent's own where not privileged
    std::int64_t workload_uid = 0;
    std::string kill;   // "v2", "freezer", "none"
    std::string cpuset; // "v2", "v1", "none"
    std::string why;
};

} // namespace perfrig
