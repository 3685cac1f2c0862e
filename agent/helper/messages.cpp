#include "agent/helper/messages.hpp"

#include "agent/helper/requests.hpp"

namespace perfrig {

namespace {

Json verb(const char* name) { return Json{{"verb", name}}; }

Json with_run(const char* name, const RunName& run) {
    Json m = verb(name);
    m["run_id"] = run.run_id;
    m["attempt"] = run.attempt;
    return m;
}

struct EncodeHelper {
    Message operator()(const BeginRun& v) const {
        Json m = with_run("begin_run", v.run);
        m["most_processes"] = v.most_processes;
        return m;
    }
    Message operator()(const EndRun& v) const {
        Json m = verb("end_run");
        m["run_id"] = v.run_id;
        m["remove_directory"] = v.remove_directory;
        return m;
    }
    Message operator()(const Sweep& v) const {
        Json m = verb("sweep");
        m["remove_directories"] = v.remove_directories;
        return m;
    }
    Message operator()(const WriteFile& v) const {
        Json m = with_run("write_file", v.run);
        m["path"] = v.path;
        m["mode"] = v.mode;
        return m;
    }
    Message operator()(const OpenFile& v) const {
        Json m = with_run("open_file", v.run);
        m["path"] = v.path;
        return m;
    }
    Message operator()(const OpenCounts& v) const {
        Json m = verb("open_counts");
        m["cpus"] = v.cpus.text();
        return m;
    }
    Message operator()(const AskFacts&) const { return verb("facts"); }
};

struct EncodeGuardian {
    Message operator()(const SpawnOrder& v) const {
        Json m = verb("spawn");
        m["name"] = v.name;
        m["role"] = v.role;
        m["argv"] = v.argv;
        m["environment"] = Json::array();
        for (const auto& [name, value] : v.environment) m["environment"].push_back(Json::array({name, value}));
        m["directory"] = v.directory;
        m["cpus"] = v.cpus.text();
        m["memory_nodes"] = v.memory_nodes.text();
        if (v.speculation.indirect_branch) m["indirect_branch"] = to_string(*v.speculation.indirect_branch);
        if (v.speculation.store_bypass) m["store_bypass"] = to_string(*v.speculation.store_bypass);
        m["stdin"] = v.stdin_fd >= 0;
        m["stdout"] = v.stdout_fd >= 0;
        m["stderr"] = v.stderr_fd >= 0;
        return m;
    }
    Message operator()(const SignalProcess& v) const {
        Json m = verb("signal");
        m["pid"] = v.pid;
        m["signal"] = v.signal;
        return m;
    }
    Message operator()(const EndThisRun&) const { return verb("end"); }
};

std::vector<std::string> texts(JsonReader& in, const char* key) {
    std::vector<std::string> all;
    for (const auto& item : in.array(key))
        if (item.is_string()) all.push_back(item.get<std::string>());
    return all;
}

constexpr ErrorKind kinds[] = {ErrorKind::bad_input,   ErrorKind::not_found, ErrorKind::conflict, ErrorKind::forbidden,
                               ErrorKind::unavailable, ErrorKind::timed_out, ErrorKind::internal};

} // namespace

Message encode(const HelperVerb& v) { return std::visit(EncodeHelper(), v); }
Message encode(const GuardianVerb& v) { return std::visit(EncodeGuardian(), v); }

Message encode(const Error& e) {
    const auto bounded = [](const std::string& text) { return text.substr(0, 4000); }; // it may quote the request
    return {{"kind", to_string(e.kind)},
            {"tried", bounded(e.tried)},
            {"on", bounded(e.on)},
            {"why", bounded(e.why)},
            {"remedy", bounded(e.remedy)}};
}

Error decode_error(const Message& message) {
    JsonReader in(message, "an error");
    Error e;
    const std::string kind = in.string_or("kind", "");
    for (const ErrorKind k : kinds)
        if (kind == to_string(k)) e.kind = k;
    e.tried = in.string_or("tried", "");
    e.on = in.string_or("on", "");
    e.why = in.string_or("why", "");
    e.remedy = in.string_or("remedy", "");
    return e;
}

Message encode(const Spawned& s) {
    return {{"pid", s.pid},
            {"start_ns", s.start_ns},
            {"cpuset", s.cpuset},
            {"cpuset_why", s.cpuset_why},
            {"cgroups", s.cgroups},
            {"most_processes", s.most_processes},
            {"processes_by", s.processes_by}};
}

Result<Spawned> decode_spawned(const Message& message) {
    JsonReader in(message, "the answer to spawn");
    Spawned s;
    s.pid = static_cast<pid_t>(in.integer("pid"));
    s.start_ns = in.integer("start_ns");
    s.cpuset = in.string("cpuset");
    s.cpuset_why = in.string("cpuset_why");
    s.cgroups = texts(in, "cgroups");
    s.most_processes = in.integer("most_processes");
    s.processes_by = in.string("processes_by");
    PERFRIG_CHECK(in.finish());
    return s;
}

Message encode(const ProcessExited& e) {
    return {{"pid", e.pid},
            {"name", e.name},
            {"code", e.status.code},
            {"signal", e.status.signal},
            {"end_ns", e.end_ns},
            {"user_seconds", e.user_seconds},
            {"system_seconds", e.system_seconds},
            {"max_rss_bytes", e.max_rss_bytes}};
}

Result<ProcessExited> decode_exited(const Message& message) {
    JsonReader in(message, "the exit of a process");
    ProcessExited e;
    e.pid = static_cast<pid_t>(in.integer("pid"));
    e.name = in.string("name");
    e.status = {static_cast<int>(in.integer("code")), static_cast<int>(in.integer("signal"))};
    e.end_ns = in.integer("end_ns");
    e.user_seconds = in.number("user_seconds");
    e.system_seconds = in.number("system_seconds");
    e.max_rss_bytes = in.unsigned_integer("max_rss_bytes");
    PERFRIG_CHECK(in.finish());
    return e;
}

Message encode(const RunEnded& e) {
    return {{"killed", e.killed},
            {"clean", e.clean},
            {"why", e.why},
            {"refused_processes", e.refused_processes},
            {"traces", e.traces}};
}

Result<RunEnded> decode_ended(const Message& message) {
    JsonReader in(message, "the end of a run");
    RunEnded e{in.integer("killed"), in.boolean_or("clean", false), in.string("why"), in.integer("refused_processes"),
               texts(in, "traces")};
    PERFRIG_CHECK(in.finish());
    return e;
}

Message encode(const SweepReport& r) { return {{"runs", r.runs}, {"killed", r.killed}}; }

Result<SweepReport> decode_swept(const Message& message) {
    JsonReader in(message, "the answer to sweep");
    SweepReport r{texts(in, "runs"), in.integer("killed")};
    PERFRIG_CHECK(in.finish());
    return r;
}

Message encode(const HelperFacts& f) {
    return {{"privileged", f.privileged},
            {"workload_user", f.workload_user},
            {"workload_uid", f.workload_uid},
            {"kill", f.kill},
            {"cpuset", f.cpuset},
            {"why", f.why}};
}

Result<HelperFacts> decode_facts(const Message& message) {
    JsonReader in(message, "the helper's facts");
    HelperFacts f;
    f.privileged = in.boolean_or("privileged", false);
    f.workload_user = in.string("workload_user");
    f.workload_uid = in.integer("workload_uid");
    f.kill = in.string("kill");
    f.cpuset = in.string("cpuset");
    f.why = in.string("why");
    PERFRIG_CHECK(in.finish());
    return f;
}

Message encode(const RunLost& l) { return {{"run_id", l.run.run_id}, {"attempt", l.run.attempt}, {"why", l.why}}; }

Result<RunLost> decode_lost(const Message& message) {
    JsonReader in(message, "the notice of a lost run");
    RunLost l{{in.integer("run_id"), in.integer("attempt")}, in.string("why")};
    PERFRIG_CHECK(in.finish());
    return l;
}

std::string reply_text(std::int64_t id, const Message& result) {
    return canonical_json(Json{{"id", id}, {"ok", result}});
}

std::string error_text(std::int64_t id, const Error& error) {
    return canonical_json(Json{{"id", id}, {"error", encode(error)}});
}

Result<std::string> request_text(std::int64_t id, Message request) {
    request["id"] = id;
    try {
        return request.dump();
    } catch (const Json::exception&) { // the library reports by exception alone
        return fail(ErrorKind::bad_input, "write a request", "", "an argument, path or variable is not UTF-8 text");
    }
}

} // namespace perfrig
