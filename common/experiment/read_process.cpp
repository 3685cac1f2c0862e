// Services, the build, and what every process has: command line, environment, role, speculation control.
#include "common/base/line_pattern.hpp"
#include "common/experiment/sections.hpp"

#include <algorithm>
#include <charconv>

namespace perfrig {

namespace {

constexpr std::int64_t hour_ms = 3'600'000;

bool only(std::string_view text, std::string_view allowed) {
    return std::all_of(text.begin(), text.end(), [&](char c) { return allowed.find(c) != std::string_view::npos; });
}
constexpr std::string_view lower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyz0123456789_-";
constexpr std::string_view variable_characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

bool is_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const std::string_view port = text.substr(colon + 1);
    if (port.starts_with("${port.")) return port.ends_with('}');
    int number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    return error == std::errc() && end == port.data() + port.size() && number >= 1 && number <= 65535;
}

Readiness read_ready(YamlReader& service) {
    Readiness out;
    if (!service.has("ready")) {
        service.know("ready");
        return out;
    }
    YamlReader in = service.map("ready");
    const std::string tcp = in.text("tcp", ""), http = in.text("http", ""), log = in.text("log", "");
    const YamlNode* command = in.node("command");
    out.within_ms = read_milliseconds(in, "within", out.within_ms, hour_ms);
    if (in.has("within") && out.within_ms == 0)
        in.fault_at("within", in.path_of("within") + " must be more than zero", "such as 30s");
    in.finish();
    const int ways = in.has("tcp") + in.has("http") + in.has("log") + in.has("command");
    if (ways != 1 && in.self().is_map()) {
        in.fault(in.self(), in.path(),
                 in.path() + (ways == 0 ? " says no way to tell" : " says more than one way to tell"),
                 "give one of tcp, http, log, command");
        return out;
    }
    if (in.has("tcp")) {
        out.kind = Readiness::Kind::tcp, out.target = tcp;
        if (!is_address(tcp))
            in.fault_at("tcp", in.path_of("tcp") + " must be HOST:PORT", "such as 127.0.0.1:${port.http}");
    } else if (in.has("http")) {
        out.kind = Readiness::Kind::http, out.target = http;
        if (!http.starts_with("http://") || http.size() < 8)
            in.fault_at("http", in.path_of("http") + " must be an http:// URL",
                        "such as http://127.0.0.1:${port.http}/");
    } else if (in.has("log")) {
        out.kind = Readiness::Kind::log, out.target = log;
        if (const auto pattern = LinePattern::compile(log); !pattern)
            in.fault_at("log", in.path_of("log") + ": " + pattern.error().why, pattern.error().remedy);
    } else if (command) {
        out.kind = Readiness::Kind::command, out.argv = read_argv(in, *command, in.path_of("command"));
    }
    return out;
}

} // namespace

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= 63 && lower.find(text.front()) != std::string_view::npos &&
           only(text, name_characters);
}

bool is_variable(std::string_view text) {
    return !text.empty() && text.size() <= 255 && only(text, variable_characters) &&
           (text.front() < '0' || text.front() > '9');
}

bool is_inner_path(std::string_view text) {
    if (text.empty() || text.size() > 255 || text.front() == '/') return false;
    while (true) {
        const std::size_t slash = text.find('/');
        const std::string_view part = text.substr(0, slash);
        if (part.empty() || part == "." || part == "..") return false;
        if (slash == std::string_view::npos) return true;
        text.remove_prefix(slash + 1);
    }
}

std::int64_t read_milliseconds(YamlReader& in, const char* key, std::int64_t fallback, std::int64_t most) {
    const Nanoseconds time = in.duration(key, Milliseconds(fallback));
    if (time.count() % 1'000'000 != 0) {
        in.fault_at(key, in.path_of(key) + " is finer than a millisecond", "use whole milliseconds");
        return fallback;
    }
    const std::int64_t ms = time.count() / 1'000'000;
    if (ms > most) {
        in.fault_at(key, in.path_of(key) + " is too long: " + format_duration(time),
                    "at most " + format_duration(Milliseconds(most)));
        return fallback;
    }
    return ms;
}

std::string read_role(YamlReader& in) {
    std::string role = in.text("role");
    if (!role.empty() && !is_name(role))
        in.fault_at("role", in.path_of("role") + " is no name of a role",
                    "lower-case letters, digits, _ and -, from a letter");
    return role;
}

std::vector<std::string> read_argv(YamlReader& in, const YamlNode& node, const std::string& path) {
    std::vector<std::string> out;
    if (node.is_scalar()) {
        if (node.text.empty())
            in.fault(node, path, path + " is empty", "name a program");
        else
            out = {"/bin/sh", "-c", node.text};
        return out;
    }
    if (!node.is_list() || node.items.empty()) {
        in.fault(node, path, path + " must be a list of arguments, or one string for the shell",
                 "such as [nginx, -c, nginx.conf]");
        return out;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        const YamlNode& item = node.items[i];
        const std::string where = path + "." + std::to_string(i);
        if (!item.is_scalar())
            in.fault(item, where, where + " must be a single value", "write it in quotes");
        else if (i == 0 && item.text.empty())
            in.fault(item, where, where + " is empty", "name a program");
        else
            out.push_back(item.text);
    }
    return out;
}

std::map<std::string, std::string> read_environment(YamlReader& in, Findings& out) {
    std::map<std::string, std::string> result;
    YamlReader map = in.map("environment");
    for (const YamlEntry& entry : map.self().entries) {
        const std::string where = map.path_of(entry.key);
        if (!is_variable(entry.key)) {
            YamlNode at;
            at.mark = entry.key_mark;
            in.fault(at, where, "'" + entry.key.substr(0, 60) + "' in " + map.path() + " is no name of a variable",
                     "letters, digits and _");
        }
        if (entry.value.is_scalar()) {
            result[entry.key] = entry.value.text;
        } else if (entry.value.is_map()) {
            YamlReader secret(entry.value, where, out.faults);
            const std::string value = secret.text("secret");
            secret.finish();
            if (!value.empty() && value.size() < least_secret_bytes)
                secret.fault_at("secret", where + " is too short a secret: hiding it would garble every text",
                                "at least 4 characters");
            result[entry.key] = value;
            if (value.size() >= least_secret_bytes) out.secrets.insert(value);
        } else {
            in.fault(entry.value, where, where + " must be text or {secret: TEXT}",
                     entry.value.is_null() ? "write \"\" for an empty one" : "");
        }
    }
    return result;
}

Command read_command_line(YamlReader& in, Findings& out) {
    Command command;
    if (const YamlNode& node = in.required("command"); !node.is_null())
        command.argv = read_argv(in, node, in.path_of("command"));
    command.environment = read_environment(in, out);
    command.directory = in.text("directory", "");
    if (!command.directory.empty() && !is_inner_path(command.directory))
        in.fault_at("directory", in.path_of("directory") + " must lie within the run's directory",
                    "a relative path without ..");
    return command;
}

Speculation read_speculation(YamlReader& in) {
    static const std::vector<std::string> states{"keep", "", "enable", "disable", "force_disable"};
    YamlReader map = in.map("speculation");
    const auto state = [&](const char* key) {
        std::string text = map.text(key, "");
        if (std::find(states.begin(), states.end(), text) == states.end()) {
            const std::string near = nearest_word(text, states);
            map.fault_at(key, map.path_of(key) + " can't be '" + text.substr(0, 60) + "'",
                         near.empty() ? "one of keep, enable, disable, force_disable" : "did you mean '" + near + "'?");
        }
        return text == "keep" ? std::string() : text;
    };
    Speculation out{state("indirect_branch"), state("store_bypass")};
    map.finish();
    return out;
}

ServiceSpec read_service(const std::string& name, const YamlNode& node, Findings& out) {
    ServiceSpec service;
    service.name = name;
    YamlReader in(node, "services." + name, out.faults);
    service.role = read_role(in);
    service.command = read_command_line(in, out);
    service.ready = read_ready(in);
    YamlReader stop = in.map("stop");
    service.stop_signal = stop.one_of("signal", "TERM", {"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL"});
    service.stop_grace_ms = read_milliseconds(stop, "grace", service.stop_grace_ms, hour_ms);
    stop.finish();
    service.speculation = read_speculation(in);
    in.finish();
    return service;
}

BuildPart read_build(YamlReader& in, Findings& out) {
    BuildPart build;
    build.role = in.text("build_role", "");
    if (!build.role.empty() && !is_name(build.role))
        in.fault_at("build_role", "build_role is no name of a role", "such as app");
    build.within_ms = read_milliseconds(in, "build_within", build.within_ms, 24 * hour_ms);
    if (build.within_ms == 0) in.fault_at("build_within", "build_within must be more than zero", "such as 10m");
    const YamlNode* list = in.node("build");
    if (!list) return build;
    if (!list->is_list()) {
        in.fault(*list, "build", "build must be a list of commands", "begin each with '- '");
        return build;
    }
    for (std::size_t i = 0; i < list->items.size(); ++i) {
        const YamlNode& item = list->items[i];
        const std::string where = "build." + std::to_string(i);
        if (item.is_map()) {
            YamlReader command(item, where, out.faults);
            build.commands.push_back(read_command_line(command, out));
            command.finish();
        } else {
            build.commands.push_back({read_argv(in, item, where), {}, {}});
        }
    }
    return build;
}

} // namespace perfrig
