// One attempt at one replicate, and everything that was seen of it.
#pragma once

#include "controller/model/submission.hpp"

#include <map>
#include <string>
#include <vector>

namespace perfrig::model {

using Labels = std::map<std::string, std::string>;

struct Run {
    Id id = 0;
    Id block_id = 0;
    Id cell_id = 0;
    Id submission_id = 0;
    Id machine_id = 0; // 0 until its block is granted
    std::string machine_name;
    std::string experiment;
    Labels levels;
    int cell_ordinal = 0;
    int position = 0;
    int replicate = 1;
    int attempt = 1;
    Id retry_of = 0;
    RunState state = RunState::planned;
    std::string reason;
    std::optional<std::int64_t> deadline_utc_ns;
    Json resolved; // null in lists
    std::string resolved_sha;
    Verdict verdict = Verdict::unreviewed;
    std::optional<std::int64_t> sealed_utc_ns, started_utc_ns, ended_utc_ns;
};

// Which environment and which CPUs a run had on a machine.
struct RunMachine {
    Id machine_id = 0;
    std::string machine_name;
    std::map<std::string, std::string> roles; // role -> cpulist granted
    Id environment_before = 0, environment_after = 0;
};

struct Process {
    Id machine_id = 0;
    int ordinal = 0;
    std::string role, name, phase;
    int pid = 0;
    std::string granted_cpus;
    std::string observed_cpus, observed_nodes; // union over its threads during measure; empty: not read back
    Json speculation = Json::object();
    std::string cgroup;
    std::int64_t started_ns = 0;
    std::optional<std::int64_t> ended_ns;
    std::string exit;
};

struct Phase {
    Id machine_id = 0;
    int ordinal = 0;
    std::string name; // fetch build start ready warm_up pause measure stop
    std::int64_t start_ns = 0;
    std::optional<std::int64_t> end_ns;
    std::int64_t utc_anchor_ns = 0, anchor_ns = 0, anchor_error_ns = 0;
};

struct Metric {
    std::string name, unit;
    Labels labels;
    std::optional<double> value; // none: the tool printed a placeholder
    std::optional<std::int64_t> window_start_ns, window_end_ns;
    std::string source = "tool"; // tool, collector, derived
    std::string status = "ok";   // reading status
    friend bool operator==(const Metric&, const Metric&) = default;
};

struct Finding {
    Id id = 0;
    Id run_id = 0, block_id = 0, machine_id = 0; // 0: not about one
    std::string check_name;
    int version = 1;
    Severity severity = Severity::info;
    std::string subject, message;
    Json evidence = Json::object();
    std::string source = "agent"; // agent, analysis (made anew at each evaluation), controller
};

struct Artifact {
    Id id = 0;
    Id run_id = 0, machine_id = 0;
    std::string name, sha256;
    std::int64_t size_bytes = 0;
    std::int64_t stored_bytes = 0; // == size once complete
    bool complete = false;
};

struct SeriesInfo {
    Id machine_id = 0;
    int id = 0; // given by the agent, unique within run and machine
    std::string name, unit;
    bool counter = false; // else a gauge
    Labels labels;
};

struct Point {
    std::int64_t time_ns = 0; // the agent's CLOCK_MONOTONIC
    double value = 0;
    friend bool operator==(const Point&, const Point&) = default;
};

struct Series {
    SeriesInfo info;
    std::vector<Point> points; // by rising time
};

// An audit entry: who did what to what.
struct Event {
    Id id = 0;
    std::int64_t at_utc_ns = 0;
    std::string actor, subject, what; // subject: "run/12", "machine/xeon", "submission/3"
    Json detail = Json::object();
};

} // namespace perfrig::model
