// perfrig-agent: one per machine. Reads what it is told (file, environment, flags) and hands over to the command.
#include "agent/setup/agent_process.hpp"
#include "agent/setup/doctor.hpp"
#include "agent/setup/join.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/log.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>

#ifndef PERFRIG_VERSION
#define PERFRIG_VERSION "0.1.0"
#endif

namespace {

using namespace perfrig;

constexpr const char* help = R"(perfrig-agent: works benchmark runs on this machine for a perfrig controller.

  perfrig-agent [run] [--config FILE]        dial the controller and work what it sends, until SIGTERM
  perfrig-agent join URL --join-token-file FILE
                                             enrol this machine; keeps the agent's own token in its state directory.
                                             PERFRIG_JOIN_TOKEN does too; --token JOINTOKEN shows in the process list
  perfrig-agent doctor                       say what this machine can and can't do, and why
  perfrig-agent work FILE                    work the runs of FILE without a controller; prints what is recorded
  perfrig-agent --version | --help

Settings, later ones win: the configuration file (--config, PERFRIG_AGENT_CONFIG, /etc/perfrig/agent.yaml),
the environment, flags. doctor without any looks at what `perfrig up` wrote.

  flag                    variable                      file             meaning
  --controller URL        PERFRIG_AGENT_CONTROLLER      controller       http://127.0.0.1:7117; loopback only until TLS
  --name NAME             PERFRIG_AGENT_NAME            name             of this machine (default: the host's name)
  --token TOKEN           PERFRIG_AGENT_TOKEN           token            the agent's own (join: the join token);
                                                                         others may see it: use a file
  --token-file FILE       PERFRIG_AGENT_TOKEN_FILE      token_file       default STATE_DIR/token, mode 0600
  --state-dir DIR         PERFRIG_AGENT_STATE_DIR       state_dir        spool, block in hand, artifacts
  --work-dir DIR          PERFRIG_AGENT_WORK_DIR        work_dir         runs' directories (default STATE_DIR/work)
  --user USER             PERFRIG_AGENT_USER            user             what the agent becomes when root starts it
  --workload-user USER    PERFRIG_AGENT_WORKLOAD_USER   workload_user    what runs start their processes as
  --metrics-listen H:P    PERFRIG_AGENT_METRICS_LISTEN  metrics_listen   default 127.0.0.1:9464; port 0: a free one
  --log-level LEVEL       PERFRIG_AGENT_LOG_LEVEL       log_level        debug, info, warning or error

In the file alone: labels, search_path, network_during_measure (live, after_measure), spool (most_bytes,
segment_bytes, event_reserve_bytes), and the profile, which says what each role gets on this machine:

  controller: http://127.0.0.1:7117
  name: xeon
  state_dir: /var/lib/perfrig-agent
  user: perfrig                  # where root starts the agent
  workload_user: perfrig-work
  profile:
    roles: {app: "0-3", db: "4-6", load: "7-9", monitor: "10"}
    share: [[load, monitor]]     # roles whose CPUs may overlap; every run then says so
    limits: {run_seconds: 14400, log_bytes: 16777216}

Exit status: 0 good, 1 doctor found something bad or a run of `work` did not complete, 2 bad input, 3 broken.
)";

struct CommandLine {
    std::string command = "run";
    std::vector<std::string> words; // behind the command
    std::string config_file, join_token_file;
    ConfigOverrides overrides;
};

Result<CommandLine> read_command_line(std::vector<std::string> arguments) {
    static const std::vector<std::string> commands = {"run", "join", "doctor", "work"};
    CommandLine line;
    bool command_seen = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string word = arguments[i];
        if (!word.starts_with("--")) {
            const bool is_command = std::find(commands.begin(), commands.end(), word) != commands.end();
            if (!command_seen && !is_command)
                return fail(ErrorKind::bad_input, "understand", word, "there is no such command",
                            "see perfrig-agent --help");
            if (command_seen)
                line.words.push_back(word);
            else
                line.command = word;
            command_seen = true;
            continue;
        }
        std::string value;
        if (const std::size_t equals = word.find('='); equals != std::string::npos) {
            value = word.substr(equals + 1);
            word.resize(equals);
        } else if (i + 1 < arguments.size()) {
            value = arguments[++i];
        } else {
            return fail(ErrorKind::bad_input, "understand", word, "it needs a value");
        }
        std::string name = word.substr(2);
        std::replace(name.begin(), name.end(), '-', '_');
        const auto& known = overridable_settings();
        if (name == "config")
            line.config_file = value;
        else if (name == "join_token_file")
            line.join_token_file = value;
        else if (std::find(known.begin(), known.end(), name) != known.end())
            line.overrides[name] = value;
        else
            return fail(ErrorKind::bad_input, "understand", word, "there is no such flag", "see perfrig-agent --help");
    }
    return line;
}

int stop_with(const Error& error) {
    std::cerr << "perfrig-agent: " << error.text() << "\n";
    return error.kind == ErrorKind::bad_input ? 2 : 3;
}

// A token on the command line can be read by everybody on this machine while we run; not any longer than it must.
// What was read of argv before is a copy.
void blot_out_tokens(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        char* from = nullptr;
        if (std::string_view(argv[i]).starts_with("--token=")) from = argv[i] + std::strlen("--token=");
        if (std::string_view(argv[i]) == "--token" && i + 1 < argc) from = argv[++i];
        if (from) std::memset(from, 'x', std::strlen(from));
    }
}

Result<std::string> find_join_token(const CommandLine& line) {
    std::string token;
    if (const char* value = std::getenv("PERFRIG_JOIN_TOKEN")) token = value;
    if (!line.join_token_file.empty()) {
        PERFRIG_TRY(token, read_file(line.join_token_file, 4096));
        token.erase(token.find_last_not_of(" \t\r\n") + 1);
    }
    if (const auto given = line.overrides.find("token"); given != line.overrides.end()) {
        token = given->second;
        std::cerr << "perfrig-agent: a token on the command line shows in the process list and in shells' histories: "
                     "use --join-token-file FILE or PERFRIG_JOIN_TOKEN\n";
    }
    if (token.empty())
        return fail(ErrorKind::bad_input, "join", "", "no join token is given",
                    "--join-token-file FILE, or PERFRIG_JOIN_TOKEN");
    return token;
}

int run_join(const CommandLine& line, ConfigOverrides overrides) {
    const auto join_token = find_join_token(line);
    if (!join_token) return stop_with(join_token.error());
    overrides.erase("token"); // it is not the agent's own
    if (!line.words.empty()) overrides["controller"] = line.words.front();
    const auto config = load_config(line.config_file, overrides);
    if (!config) return stop_with(config.error());
    const auto joined = join(*config, *join_token);
    if (!joined) return stop_with(joined.error());
    std::cout << "machine " << joined->machine << " is enrolled at " << config->controller << "\nits token is in "
              << joined->token_file << "\nstart it with: perfrig-agent run"
              << (line.config_file.empty() ? std::string(" --controller ") + config->controller
                                           : " --config " + line.config_file)
              << "\n";
    return 0;
}

int run_command_line(std::vector<std::string> arguments) {
    for (const std::string& word : arguments) {
        if (word == "--help" || word == "-h" || word == "help") return std::cout << help, 0;
        if (word == "--version") return std::cout << "perfrig-agent " PERFRIG_VERSION "\n", 0;
    }
    auto line = read_command_line(std::move(arguments));
    if (!line) return stop_with(line.error());
    const std::size_t most_words = line->command == "join" || line->command == "work" ? 1 : 0;
    if (line->words.size() > most_words)
        return stop_with(fail(ErrorKind::bad_input, "understand", line->words.back(), "one word too many",
                              "see perfrig-agent --help"));
    if (line->config_file.empty())
        if (const char* file = std::getenv("PERFRIG_AGENT_CONFIG")) line->config_file = file;
    ConfigOverrides overrides = overrides_from_environment();
    for (const auto& [name, value] : line->overrides) overrides[name] = value;
    if (line->command == "join") return run_join(*line, std::move(overrides));
    auto config = load_config(line->config_file, overrides);
    if (config && config->file.empty() && line->command == "doctor") // it only looks, so it may look at what is in use
        config = load_config(config_of_up(), overrides);
    if (!config) return stop_with(config.error());
    static const std::map<std::string, log::Level> levels = {{"debug", log::Level::debug},
                                                             {"info", log::Level::info},
                                                             {"warning", log::Level::warning},
                                                             {"error", log::Level::error}};
    const auto level = levels.find(config->log_level);
    if (level == levels.end())
        return stop_with(fail(ErrorKind::bad_input, "set the log level", config->log_level, "it is none",
                              "debug, info, warning or error"));
    log::start("perfrig-agent", level->second);
    if (line->command == "doctor") return doctor(*config, std::cout);
    if (line->command == "work") {
        if (line->words.empty()) return stop_with(fail(ErrorKind::bad_input, "work", "", "no file is named"));
        return work_file(*config, line->words.front());
    }
    return run_agent(*config, PERFRIG_VERSION);
}

} // namespace

int main(int argc, char** argv) {
    try {
        std::vector<std::string> arguments(argv + 1, argv + argc);
        blot_out_tokens(argc, argv);
        return run_command_line(std::move(arguments));
    } catch (const std::exception& e) { // a bug, or a start that can't be made
        std::cerr << "perfrig-agent: " << e.what() << "\n";
        return 3;
    }
}
