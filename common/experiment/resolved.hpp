// A resolved run: everything an agent is told about one attempt at one replicate. It is made once, from the experiment
// file and the machine's profile, is stored with its hash, and never changes. The agent needs nothing else.
//
// Two kinds of text are left for the agent to fill in, because only it knows them: ${run.directory} and ${port.NAME}
// (a free TCP port of the machine, the same within one run).
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

// "" = leave alone; otherwise enable | disable | force_disable, as prctl(PR_SET_SPECULATION_CTRL) names them.
struct Speculation {
    std::string indirect_branch;
    std::string store_bypass;
    bool any() const { return !indirect_branch.empty() || !store_bypass.empty(); }
    friend bool operator==(const Speculation&, const Speculation&) = default;
};

// A program to start: argv is executed as it stands; a command written as one string became {"/bin/sh", "-c", text}.
struct Command {
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment;
    std::string directory; // relative to the run's directory; empty: the run's directory
    friend bool operator==(const Command&, const Command&) = default;
};

struct Readiness {
    enum class Kind { none, tcp, http, log, command };
    Kind kind = Kind::none;
    std::string target;            // host:port, URL, or the regular expression that a log line must match
    std::vector<std::string> argv; // for command: exit status 0 means ready
    std::int64_t within_ms = 60'000;
    friend bool operator==(const Readiness&, const Readiness&) = default;
};

struct ServiceSpec {
    std::string name;
    std::string role;
    Command command;
    Readiness ready;
    std::string stop_signal = "TERM";
    std::int64_t stop_grace_ms = 10'000;
    Speculation speculation;
    friend bool operator==(const ServiceSpec&, const ServiceSpec&) = default;
};

// A load or measuring program. `options` are the tool's own (common/experiment/tool_options.hpp).
struct ToolSpec {
    std::string name;
    std::string tool; // wrk, pgbench, perf-sched-pipe, command
    std::string role;
    Json options = Json::object();
    std::map<std::string, std::string> environment;
    Speculation speculation;
    bool warms_up = true; // also runs in the warm-up phase, with its duration
    friend bool operator==(const ToolSpec&, const ToolSpec&) = default;
};

struct ResolvedRun {
    std::string experiment;
    std::map<std::string, std::string> levels; // factor -> level, in the text of the file
    int replicate = 1;
    std::map<std::string, std::string> roles;    // role -> cpulist granted by the machine's profile
    std::vector<std::vector<std::string>> share; // roles that may share CPUs, from the profile
    std::map<std::string, std::string> files;    // path relative to the run's directory -> content
    std::vector<std::string> ports;              // names for ${port.NAME}
    std::vector<Command> build;                  // run in order before anything starts, as the workload's user
    std::string build_role;                      // CPUs for the build; empty: the first service's or tool's role
    std::int64_t build_within_ms = 600'000;
    std::vector<ServiceSpec> services; // started in this order, stopped in reverse
    std::vector<ToolSpec> tools;       // all of them run together in measure
    std::int64_t warm_up_ms = 0;       // 0: no such phase
    std::int64_t pause_ms = 0;
    std::int64_t measure_ms = 0; // 0: as long as the tools take (perf bench has loops, not time)
    std::map<std::string, std::optional<std::string>> kernel_args; // must hold for /proc/cmdline; null: must be absent
    std::vector<std::string> secrets; // values to redact wherever they would be printed or stored

    friend bool operator==(const ResolvedRun&, const ResolvedRun&) = default;
};

// to_json leaves out nothing; secrets' values are in it: it goes to the agent and, redacted, to everything else.
Json to_json(const ResolvedRun& run);
Result<ResolvedRun> resolved_run_from_json(const Json& json);
// Every string in the tree with each secret replaced by "[secret]". Secrets shorter than 4 characters are refused at
// validation, since redacting them would garble everything.
Json redact(Json json, const std::vector<std::string>& secrets);
std::string redact(std::string text, const std::vector<std::string>& secrets);
// SHA-256 of the canonical text, secrets redacted: equal definitions have equal hashes.
std::string hash_of(const ResolvedRun& run);

} // namespace perfrig
