// The controller's configuration: one table of options, each of which may be given as a flag, in the environment, in a
// YAML file, or not at all, in this order of precedence. Pure: arguments, environment and file reading come in.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/log.hpp"
#include "common/base/result.hpp"
#include "common/net/url.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perfrig::api {

struct Config {
    HostPort listen;
    std::string database; // libpq's connection string
    Milliseconds database_wait{30'000};
    std::string admin_token_file; // empty: none
    int pool_size = 8;            // database connections, 4 .. 100
    Milliseconds lease{15'000};
    log::Level log_level = log::Level::info;
};

struct Invocation {
    enum class Action { run, help, version, print_config };
    Action action = Action::run;
    Config config;      // for run
    std::string output; // for the others: what to print
};

struct ConfigSources {
    std::vector<std::string> arguments; // without the program's name
    std::function<std::optional<std::string>(const std::string& name)> environment;
    std::function<Result<std::string>(const std::string& path)> read_file;
};

// bad_input names the flag, the variable, or the file's line and column.
Result<Invocation> load_config(const ConfigSources& sources);

std::string config_help();

} // namespace perfrig::api
