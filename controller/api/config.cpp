#include "controller/api/config.hpp"

#include "common/base/units.hpp"
#include "common/experiment/yaml_tree.hpp"

#include <algorithm>
#include <charconv>
#include <regex>

namespace perfrig::api {

namespace {

struct Option {
    const char* name; // as a flag; with '_' in the file, as PERFRIG_... in the environment
    const char* argument;
    const char* fallback;
    const char* help;
};

constexpr Option options[] = {
    {"listen", "ADDRESS:PORT", "127.0.0.1:7117", "where to listen; only loopback until TLS is there"},
    {"database", "CONNECTION", "",
     "PostgreSQL 15 or newer, as libpq takes it: \"host=/run/postgresql dbname=perfrig\""},
    {"database-file", "FILE", "", "a file that holds the connection string, so that no password shows in ps"},
    {"database-wait", "TIME", "30s", "how long to wait for the database at the start"},
    {"admin-token-file", "FILE", "", "a user token: read if the file is there, else made (mode 0600)"},
    {"pool-size", "N", "8", "database connections, 4 to 100"},
    {"lease", "TIME", "15s", "how long a machine's lease lives without its agent's heartbeat"},
    {"log-level", "LEVEL", "info", "debug, info, warning or error"},
};

struct Value {
    std::string text;
    std::string from; // "--listen", "PERFRIG_LISTEN", "controller.yaml:3:9", "default"
};
using Values = std::map<std::string, Value>;

std::string variable_of(const std::string& name) {
    std::string out = "PERFRIG_";
    for (const char c : name) out += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out;
}
std::string key_of(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}
const Option* find_option(const std::string& name) {
    for (const auto& option : options)
        if (option.name == name) return &option;
    return nullptr;
}

std::string nearest_flag(const std::string& name) {
    std::vector<std::string> names{"config", "help", "version", "print-config"};
    for (const auto& option : options) names.emplace_back(option.name);
    const auto near = nearest_word(name, names);
    return near.empty() ? "see --help" : "did you mean --" + near + "?";
}

struct Flags {
    Values values;
    std::string config_file;
    bool help = false, version = false, print = false;
};

Result<Flags> read_flags(const std::vector<std::string>& arguments) {
    Flags flags;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto& argument = arguments[i];
        const auto refuse = [&](std::string why, std::string remedy = {}) {
            return fail(ErrorKind::bad_input, "take the argument", argument, std::move(why), std::move(remedy));
        };
        if (argument == "-h" || argument == "--help")
            flags.help = true;
        else if (argument == "--version")
            flags.version = true;
        else if (argument == "--print-config")
            flags.print = true;
        else {
            if (!argument.starts_with("--")) return refuse("it is no flag", "see --help");
            const auto equals = argument.find('=');
            const auto name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
            if (name != "config" && !find_option(name)) return refuse("there is no such flag", nearest_flag(name));
            if (equals == std::string::npos && i + 1 == arguments.size()) return refuse("its value is missing");
            const auto value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
            if (name == "config")
                flags.config_file = value;
            else
                flags.values[name] = {value, "--" + name};
        }
    }
    return flags;
}

Result<void> read_file_values(const std::string& path, const std::string& text, Values& values) {
    const auto read = parse_yaml(text);
    auto faults = read.faults;
    if (read.tree && !read.tree->is_map() && !read.tree->is_null())
        faults.push_back({read.tree->mark.line, read.tree->mark.column, "", "the configuration is no map", ""});
    if (read.tree && read.tree->is_map())
        for (const auto& entry : read.tree->entries) {
            std::string name = entry.key;
            std::replace(name.begin(), name.end(), '_', '-');
            const auto mark = entry.key_mark;
            if (!find_option(name) || entry.key != key_of(name))
                faults.push_back(
                    {mark.line, mark.column, entry.key, "unknown key '" + entry.key + "'", nearest_flag(name)});
            else if (!entry.value.is_scalar())
                faults.push_back({mark.line, mark.column, entry.key, "'" + entry.key + "' takes one value", ""});
            else
                values[name] = {entry.value.text, path + ":" + std::to_string(entry.value.mark.line) + ":" +
                                                      std::to_string(entry.value.mark.column)};
        }
    if (faults.empty()) return {};
    std::string why;
    for (const auto& fault : in_order(faults)) why += (why.empty() ? "" : "; ") + fault.text(path);
    return fail(ErrorKind::bad_input, "read the configuration", path, why);
}

class Reader {
  public:
    explicit Reader(const Values& values) : values_(values) {}
    const std::string& text(const char* name) const { return values_.at(name).text; }
    Error refuse(const char* name, std::string why, std::string remedy = {}) const {
        const auto& value = values_.at(name);
        return fail(ErrorKind::bad_input, "take " + std::string(name) + " (" + value.from + ")", value.text,
                    std::move(why), std::move(remedy));
    }
    Result<Milliseconds> time(const char* name, Milliseconds least, Milliseconds most) const {
        const auto parsed = parse_duration(text(name));
        if (!parsed) return refuse(name, parsed.error().why, "write it with a unit: 30s");
        const auto value = std::chrono::duration_cast<Milliseconds>(*parsed);
        if (value < least || value > most)
            return refuse(name, "it must lie from " + format_duration(least) + " to " + format_duration(most));
        return value;
    }

  private:
    const Values& values_;
};

Result<Config> to_config(const Values& values, const ConfigSources& sources) {
    const Reader in(values);
    Config config;
    const auto listen = parse_host_port(in.text("listen"));
    if (!listen) return in.refuse("listen", listen.error().why, "write ADDRESS:PORT");
    if (!is_loopback(listen->host))
        return in.refuse("listen", "without TLS the controller listens on loopback alone",
                         "listen on 127.0.0.1 and reach it through a tunnel: ssh -L 7117:127.0.0.1:7117 HOST");
    config.listen = *listen;
    if (config.listen.host == "localhost") config.listen.host = "127.0.0.1";
    config.database = in.text("database");
    if (const auto& file = in.text("database-file"); !file.empty()) {
        if (!config.database.empty())
            return in.refuse("database-file", "database is given, too", "give one of the two");
        PERFRIG_TRY(config.database, sources.read_file(file));
        config.database.erase(config.database.find_last_not_of(" \t\r\n") + 1);
    }
    if (config.database.empty())
        return fail(ErrorKind::bad_input, "start", "", "no database is named",
                    "give --database \"host=/run/postgresql dbname=perfrig\", or --database-file");
    PERFRIG_TRY(config.database_wait, in.time("database-wait", Milliseconds{0}, Milliseconds{3'600'000}));
    PERFRIG_TRY(config.lease, in.time("lease", Milliseconds{3'000}, Milliseconds{3'600'000}));
    config.admin_token_file = in.text("admin-token-file");
    const auto& size = in.text("pool-size");
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), config.pool_size);
    if (error != std::errc() || end != size.data() + size.size() || config.pool_size < 4 || config.pool_size > 100)
        // Half of them are the agents', where sealing a large run keeps one for seconds: heartbeats need another.
        return in.refuse("pool-size", "it must be a number from 4 to 100");
    const std::map<std::string, log::Level> levels{{"debug", log::Level::debug},
                                                   {"info", log::Level::info},
                                                   {"warning", log::Level::warning},
                                                   {"error", log::Level::error}};
    const auto level = levels.find(in.text("log-level"));
    if (level == levels.end()) return in.refuse("log-level", "it is none of debug, info, warning, error");
    config.log_level = level->second;
    return config;
}

std::string without_password(const std::string& connection) {
    static const std::regex keyword(R"((password\s*=\s*)('[^']*'|\S+))"), uri(R"((://[^:/@\s]*:)[^@\s]*@)");
    return std::regex_replace(std::regex_replace(connection, keyword, "$1..."), uri, "$1...@");
}

std::string print(const Values& values) {
    std::string out;
    for (const auto& option : options) {
        const auto& value = values.at(option.name);
        out += key_of(option.name) + ": " + Json(without_password(value.text)).dump() + "  # " + value.from + "\n";
    }
    return out;
}

} // namespace

std::string config_help() {
    std::string out =
        "perfrig-controller: queues experiments, grants machines to them, and keeps what they measure.\n"
        "\n"
        "Try it (PostgreSQL 15 or newer is running):\n"
        "  createdb perfrig\n"
        "  perfrig-controller --database \"host=/run/postgresql dbname=perfrig\" --admin-token-file admin.token\n"
        "  curl -H \"Authorization: Bearer $(cat admin.token)\" --data-binary @web-scaling.yaml \\\n"
        "       -H 'Content-Type: application/yaml' http://127.0.0.1:7117/api/v1/submissions\n"
        "\n"
        "Every option may be a flag, a variable in the environment, or a line of the YAML file that --config names\n"
        "(or PERFRIG_CONFIG); flags win over the environment, the environment over the file.\n"
        "\n";
    for (const auto& option : options) {
        out += "  --" + std::string(option.name) + " " + option.argument + "\n      " + option.help;
        if (*option.fallback) out += " (default " + std::string(option.fallback) + ")";
        out += "\n      " + variable_of(option.name) + ", " + key_of(option.name) + ":\n";
    }
    return out +
           "  --config FILE\n      the YAML file\n"
           "  --print-config\n      print what holds and where it comes from, and end\n"
           "  --version, --help\n"
           "\n"
           "It stops within 10 s of SIGTERM; killing it loses nothing. /healthz says how it is, without a token.\n";
}

Result<Invocation> load_config(const ConfigSources& sources) {
    Invocation out;
    PERFRIG_TRY(const auto flags, read_flags(sources.arguments));
    if (flags.help) {
        out.action = Invocation::Action::help;
        out.output = config_help();
        return out;
    }
    if (flags.version) {
        out.action = Invocation::Action::version;
        return out;
    }
    Values values;
    for (const auto& option : options) values[option.name] = {option.fallback, "default"};
    const auto path =
        !flags.config_file.empty() ? flags.config_file : sources.environment("PERFRIG_CONFIG").value_or("");
    if (!path.empty()) {
        PERFRIG_TRY(const auto text, sources.read_file(path));
        PERFRIG_CHECK(read_file_values(path, text, values));
    }
    for (const auto& option : options)
        if (const auto value = sources.environment(variable_of(option.name)))
            values[option.name] = {*value, variable_of(option.name)};
    for (const auto& [name, value] : flags.values) values[name] = value;
    if (flags.print) {
        out.action = Invocation::Action::print_config;
        out.output = print(values);
    }
    auto config = to_config(values, sources);
    if (config)
        out.config = std::move(*config);
    else if (!flags.print)
        return std::move(config).error();
    return out;
}

} // namespace perfrig::api
