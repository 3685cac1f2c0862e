#include "agent/setup/config.hpp"

#include "common/base/file_tree.hpp"
#include "common/experiment/yaml_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr std::int64_t default_log_bytes = 16LL << 20;

std::string variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value ? value : "";
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
}

std::string host_name() {
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) != 0) return "machine";
    std::string out;
    for (const char c : std::string(name)) {
        const char low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        const bool plain = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') || low == '-' || low == '.';
        out.push_back(plain ? low : '-');
    }
    return out.substr(0, 63);
}

std::string state_folder(const std::string& name) {
    if (::geteuid() == 0) return "/var/lib/" + name;
    const std::string state = variable("XDG_STATE_HOME");
    return (state.empty() ? variable("HOME") + "/.local/state" : state) + "/" + name;
}

// CPU lists are text whether quoted or not: 0 and "0" mean the same.
void lists_to_text(Json& profile, const char* key) {
    if (!profile.contains(key) || !profile[key].is_object()) return;
    for (auto& [role, list] : profile[key].items())
        if (list.is_number()) list = list.dump();
}

void read_profile(YamlReader& in, AgentConfig& config) {
    const YamlNode* node = in.node("profile");
    Json json = node ? to_json(*node) : Json::object();
    lists_to_text(json, "roles");
    lists_to_text(json, "memory");
    const bool log_bound_given = json.is_object() && json.contains("limits") && json["limits"].is_object() &&
                                 json["limits"].contains("log_bytes");
    auto profile = profile_from_json(json);
    if (!profile)
        return in.fault_at("profile", profile.error().on + ": " + profile.error().why, profile.error().remedy);
    config.profile = std::move(*profile);
    if (!log_bound_given) config.profile.limits.log_bytes = default_log_bytes;
}

AgentConfig read_settings(const YamlNode& tree, std::vector<Fault>& faults) {
    AgentConfig config;
    YamlReader in(tree, "", faults);
    config.controller = in.text("controller", "");
    config.name = in.text("name", "");
    config.labels = in.text_map("labels");
    config.token = in.text("token", "");
    config.token_file = in.text("token_file", "");
    config.state_dir = in.text("state_dir", "");
    config.work_dir = in.text("work_dir", "");
    config.user = in.text("user", "");
    config.workload_user = in.text("workload_user", "");
    config.metrics_listen = in.text("metrics_listen", config.metrics_listen);
    config.log_level = in.one_of("log_level", config.log_level, {"debug", "info", "warning", "error"});
    config.search_path = in.text("search_path", config.search_path);
    if (in.one_of("network_during_measure", "live", {"live", "after_measure"}) == "after_measure")
        config.during_measure = NetworkPolicy::after_measure;
    YamlReader spool = in.map("spool");
    config.spool.most_bytes = spool.size_bytes("most_bytes", config.spool.most_bytes);
    config.spool.segment_bytes = spool.size_bytes("segment_bytes", config.spool.segment_bytes);
    config.spool.event_reserve_bytes = spool.size_bytes("event_reserve_bytes", config.spool.event_reserve_bytes);
    if (config.spool.most_bytes <= config.spool.event_reserve_bytes)
        spool.fault_at("most_bytes", "must be more than event_reserve_bytes (64MiB where it isn't given)");
    spool.finish();
    read_profile(in, config);
    in.finish();
    return config;
}

Result<void> apply(AgentConfig& config, const ConfigOverrides& overrides) {
    for (const auto& [name, text] : overrides) {
        if (name == "controller")
            config.controller = text;
        else if (name == "name")
            config.name = text;
        else if (name == "token")
            config.token = text;
        else if (name == "token_file")
            config.token_file = text;
        else if (name == "state_dir")
            config.state_dir = text;
        else if (name == "work_dir")
            config.work_dir = text;
        else if (name == "user")
            config.user = text;
        else if (name == "workload_user")
            config.workload_user = text;
        else if (name == "metrics_listen")
            config.metrics_listen = text;
        else if (name == "log_level")
            config.log_level = text;
        else
            return fail(ErrorKind::bad_input, "set", name, "there is no such setting");
    }
    return {};
}

bool is_machine_name(const std::string& name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    };
    return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), plain) &&
           (std::isalnum(static_cast<unsigned char>(name.front())) != 0);
}

} // namespace

const std::vector<std::string>& overridable_settings() {
    static const std::vector<std::string> names = {"controller",     "name",     "token", "token_file",
                                                   "state_dir",      "work_dir", "user",  "workload_user",
                                                   "metrics_listen", "log_level"};
    return names;
}

ConfigOverrides overrides_from_environment() {
    ConfigOverrides out;
    for (const std::string& name : overridable_settings())
        if (const std::string value = variable("PERFRIG_AGENT_" + upper(name)); !value.empty()) out[name] = value;
    return out;
}

Result<AgentConfig> parse_config(std::string_view text, const std::string& file, const ConfigOverrides& overrides) {
    YamlOutcome yaml = parse_yaml(text);
    std::vector<Fault> faults = std::move(yaml.faults);
    AgentConfig config;
    if (yaml.tree && faults.empty()) config = read_settings(*yaml.tree, faults);
    if (!faults.empty()) {
        std::string why;
        for (const Fault& fault : in_order(std::move(faults))) why += "\n  " + fault.text(file);
        return fail(ErrorKind::bad_input, "read the configuration", file, why);
    }
    config.file = file;
    PERFRIG_CHECK(apply(config, overrides));
    if (config.name.empty()) config.name = host_name();
    if (!is_machine_name(config.name))
        return fail(ErrorKind::bad_input, "take the machine's name", config.name,
                    "it may hold a-z, 0-9, '.', '_' and '-'", "set 'name' in the configuration or --name");
    if (config.state_dir.empty()) config.state_dir = state_folder("perfrig-agent");
    if (config.state_dir.front() != '/')
        return fail(ErrorKind::bad_input, "use the state directory", config.state_dir, "its path isn't absolute");
    while (config.state_dir.size() > 1 && config.state_dir.back() == '/') config.state_dir.pop_back();
    if (config.work_dir.empty()) config.work_dir = config.state_dir + "/work";
    if (config.token_file.empty()) config.token_file = config.state_dir + "/token";
    if (!config.controller.empty()) PERFRIG_CHECK(controller_url(config.controller));
    PERFRIG_TRY(const HostPort metrics, parse_host_port(config.metrics_listen));
    if (!is_loopback(metrics.host))
        return fail(ErrorKind::bad_input, "serve metrics at", config.metrics_listen,
                    "without TLS only addresses of this machine alone are allowed", "use 127.0.0.1");
    return config;
}

Result<AgentConfig> load_config(std::string file, const ConfigOverrides& overrides) {
    if (file.empty() && ::access(default_config_file, R_OK) == 0) file = default_config_file;
    if (file.empty()) return parse_config("", "", overrides);
    PERFRIG_TRY(const std::string text, read_file(file, 1 << 20));
    return parse_config(text, file, overrides);
}

std::string config_of_up() {
    const std::string given = variable("PERFRIG_DIR");
    std::string file = (given.empty() ? state_folder("perfrig") : given) + "/agent.yaml";
    return ::access(file.c_str(), R_OK) == 0 ? file : "";
}

Result<std::string> agent_token(const AgentConfig& config) {
    if (!config.token.empty()) return config.token;
    struct stat status {};
    if (::stat(config.token_file.c_str(), &status) != 0)
        return fail(ErrorKind::not_found, "read the agent's token", config.token_file, "there is none",
                    "enrol this machine: perfrig-agent join URL --join-token-file FILE");
    if ((status.st_mode & 077) != 0)
        return fail(ErrorKind::forbidden, "read the agent's token", config.token_file, "others may read it",
                    "chmod 600 it, and enrol again if they may have");
    PERFRIG_TRY(std::string token, read_file(config.token_file, 4096));
    while (!token.empty() && (token.back() == '\n' || token.back() == ' ')) token.pop_back();
    if (token.empty()) return fail(ErrorKind::bad_input, "read the agent's token", config.token_file, "it is empty");
    return token;
}

Result<Url> controller_url(const std::string& text) {
    PERFRIG_TRY(Url url, parse_url(text));
    if (url.secure())
        return fail(ErrorKind::bad_input, "use the controller", text, "TLS is not built in yet",
                    "write http://127.0.0.1:PORT");
    if (!is_loopback(url.host))
        return fail(
            ErrorKind::bad_input, "use the controller", text,
            "without TLS the token would cross the network in the clear, so only this machine itself is allowed",
            "forward a port: ssh -N -L 7117:127.0.0.1:7117 CONTROLLER, then use http://127.0.0.1:7117");
    return url;
}

} // namespace perfrig
