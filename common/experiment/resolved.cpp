#include "common/experiment/resolved.hpp"

#include "common/base/hash.hpp"

namespace perfrig {

namespace {

constexpr const char* readiness_names[] = {"none", "tcp", "http", "log", "command"};

Json to_json(const Speculation& s) {
    return {{"indirect_branch", s.indirect_branch}, {"store_bypass", s.store_bypass}};
}

Json to_json(const Command& c) {
    return {{"argv", c.argv}, {"environment", c.environment}, {"directory", c.directory}};
}

Json to_json(const ServiceSpec& s) {
    return {{"name", s.name},
            {"role", s.role},
            {"command", to_json(s.command)},
            {"ready",
             {{"kind", readiness_names[static_cast<int>(s.ready.kind)]},
              {"target", s.ready.target},
              {"argv", s.ready.argv},
              {"within_ms", s.ready.within_ms}}},
            {"stop_signal", s.stop_signal},
            {"stop_grace_ms", s.stop_grace_ms},
            {"speculation", to_json(s.speculation)}};
}

Json to_json(const ToolSpec& t) {
    return {{"name", t.name},
            {"tool", t.tool},
            {"role", t.role},
            {"options", t.options},
            {"environment", t.environment},
            {"speculation", to_json(t.speculation)},
            {"warms_up", t.warms_up}};
}

template <class T> Json list_to_json(const std::vector<T>& items) {
    Json out = Json::array();
    for (const T& item : items) out.push_back(to_json(item));
    return out;
}

std::vector<std::string> strings(JsonReader& in, const Json& array, const char* what) {
    std::vector<std::string> out;
    for (const Json& item : array) {
        if (item.is_string())
            out.push_back(item.get<std::string>());
        else
            in.fault(std::string("'") + what + "' must hold strings");
    }
    return out;
}

std::map<std::string, std::string> string_map(JsonReader& in, const Json& object, const char* what) {
    std::map<std::string, std::string> out;
    for (const auto& [key, value] : object.items()) {
        if (value.is_string())
            out[key] = value.get<std::string>();
        else
            in.fault(std::string("'") + what + "' must hold strings");
    }
    return out;
}

Result<Speculation> speculation_from_json(const Json& json) {
    JsonReader in(json, "speculation");
    Speculation s{in.string("indirect_branch"), in.string("store_bypass")};
    PERFRIG_CHECK(in.finish());
    return s;
}

Result<Command> command_from_json(const Json& json) {
    JsonReader in(json, "a command");
    Command c{strings(in, in.array("argv"), "argv"), string_map(in, in.object("environment"), "environment"),
              in.string("directory")};
    if (c.argv.empty()) in.fault("'argv' is empty");
    PERFRIG_CHECK(in.finish());
    return c;
}

Result<ServiceSpec> service_from_json(const Json& json) {
    JsonReader in(json, "a service");
    ServiceSpec s;
    s.name = in.string("name");
    s.role = in.string("role");
    s.stop_signal = in.string("stop_signal");
    s.stop_grace_ms = in.integer("stop_grace_ms");
    JsonReader ready(in.object("ready"), "service " + s.name + ": ready");
    const std::string kind = ready.string("kind");
    bool known = false;
    for (int i = 0; i < 5; ++i)
        if (kind == readiness_names[i]) s.ready.kind = static_cast<Readiness::Kind>(i), known = true;
    if (!known) ready.fault("unknown kind '" + kind + "'");
    s.ready.target = ready.string("target");
    s.ready.argv = strings(ready, ready.array("argv"), "argv");
    s.ready.within_ms = ready.integer("within_ms");
    PERFRIG_CHECK(ready.finish());
    const Json& command = in.object("command");
    const Json& speculation = in.object("speculation");
    PERFRIG_CHECK(in.finish());
    PERFRIG_TRY(s.command, command_from_json(command));
    PERFRIG_TRY(s.speculation, speculation_from_json(speculation));
    return s;
}

Result<ToolSpec> tool_from_json(const Json& json) {
    JsonReader in(json, "a tool");
    ToolSpec t;
    t.name = in.string("name");
    t.tool = in.string("tool");
    t.role = in.string("role");
    t.options = in.object("options");
    t.environment = string_map(in, in.object("environment"), "environment");
    t.warms_up = in.boolean_or("warms_up", true);
    const Json& speculation = in.object("speculation");
    PERFRIG_CHECK(in.finish());
    PERFRIG_TRY(t.speculation, speculation_from_json(speculation));
    return t;
}

} // namespace

Json to_json(const ResolvedRun& run) {
    Json kernel_args = Json::object();
    for (const auto& [key, value] : run.kernel_args) kernel_args[key] = value ? Json(*value) : Json(nullptr);
    return {{"perfrig", 1},
            {"experiment", run.experiment},
            {"levels", run.levels},
            {"replicate", run.replicate},
            {"roles", run.roles},
            {"share", run.share},
            {"files", run.files},
            {"ports", run.ports},
            {"build", list_to_json(run.build)},
            {"build_role", run.build_role},
            {"build_within_ms", run.build_within_ms},
            {"services", list_to_json(run.services)},
            {"tools", list_to_json(run.tools)},
            {"warm_up_ms", run.warm_up_ms},
            {"pause_ms", run.pause_ms},
            {"measure_ms", run.measure_ms},
            {"kernel_args", kernel_args},
            {"secrets", run.secrets}};
}

Result<ResolvedRun> resolved_run_from_json(const Json& json) {
    JsonReader in(json, "a resolved run");
    ResolvedRun run;
    if (in.integer("perfrig") != 1) in.fault("only version 1 of resolved runs is known here");
    run.experiment = in.string("experiment");
    run.levels = string_map(in, in.object("levels"), "levels");
    run.replicate = static_cast<int>(in.integer("replicate"));
    run.roles = string_map(in, in.object("roles"), "roles");
    for (const Json& group : in.array("share")) run.share.push_back(strings(in, group, "share"));
    run.files = string_map(in, in.object("files"), "files");
    run.ports = strings(in, in.array("ports"), "ports");
    run.build_role = in.string("build_role");
    run.build_within_ms = in.integer("build_within_ms");
    run.warm_up_ms = in.integer("warm_up_ms");
    run.pause_ms = in.integer("pause_ms");
    run.measure_ms = in.integer("measure_ms");
    run.secrets = strings(in, in.array("secrets"), "secrets");
    for (const auto& [key, value] : in.object("kernel_args").items()) {
        if (value.is_null())
            run.kernel_args[key] = std::nullopt;
        else if (value.is_string())
            run.kernel_args[key] = value.get<std::string>();
        else
            in.fault("'kernel_args' must hold strings or null");
    }
    const Json &build = in.array("build"), &services = in.array("services"), &tools = in.array("tools");
    PERFRIG_CHECK(in.finish());
    for (const Json& item : build) {
        PERFRIG_TRY(Command command, command_from_json(item));
        run.build.push_back(std::move(command));
    }
    for (const Json& item : services) {
        PERFRIG_TRY(ServiceSpec service, service_from_json(item));
        run.services.push_back(std::move(service));
    }
    for (const Json& item : tools) {
        PERFRIG_TRY(ToolSpec tool, tool_from_json(item));
        run.tools.push_back(std::move(tool));
    }
    return run;
}

std::string redact(std::string text, const std::vector<std::string>& secrets) {
    static constexpr std::string_view mark = "[secret]";
    for (const std::string& secret : secrets) {
        if (secret.empty()) continue;
        for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += mark.size())
            text.replace(at, secret.size(), mark);
    }
    return text;
}

Json redact(Json json, const std::vector<std::string>& secrets) {
    if (json.is_string()) return redact(json.get<std::string>(), secrets);
    if (json.is_array() || json.is_object())
        for (Json& item : json) item = redact(std::move(item), secrets);
    return json;
}

std::string hash_of(const ResolvedRun& run) {
    const Json json = redact(to_json(run), run.secrets);
    return sha256_hex(canonical_json(json));
}

} // namespace perfrig
