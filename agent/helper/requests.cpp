#include "agent/helper/requests.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>

namespace perfrig {

namespace {

constexpr std::int64_t greatest_id = std::int64_t{1} << 53; // exact in every JSON reader
constexpr std::int64_t most_attempts = 1'000'000;
constexpr std::size_t most_name_bytes = 64;
constexpr std::size_t most_path_bytes = 1024;

bool is_name(std::string_view text) {
    if (text.empty() || text.size() > most_name_bytes || text.front() == '.') return false;
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.';
    });
}

void only(JsonReader& in, const Json& message, std::initializer_list<std::string_view> members) {
    if (!message.is_object()) return; // the reader has said so
    for (const auto& [key, value] : message.items())
        if (key != "id" && key != "verb" && std::find(members.begin(), members.end(), key) == members.end())
            in.fault("member '" + key + "' is unknown");
}

std::int64_t bounded(JsonReader& in, const char* key, std::int64_t least, std::int64_t most) {
    const std::int64_t value = in.integer(key);
    if (value < least || value > most) in.fault("member '" + std::string(key) + "' is out of range");
    return value;
}

bool flag(JsonReader& in, const char* key) { return in.boolean_or(key, false); }

RunName run_name(JsonReader& in) {
    RunName run;
    run.run_id = bounded(in, "run_id", 1, greatest_id);
    run.attempt = bounded(in, "attempt", 1, most_attempts);
    return run;
}

std::string path(JsonReader& in) {
    std::string text = in.string("path");
    if (const auto parts = split_path(text); !parts) in.fault(parts.error().why);
    return text;
}

std::vector<std::string> strings(JsonReader& in, const Json& array, const char* what) {
    std::vector<std::string> all;
    for (const auto& item : array) {
        if (item.is_string())
            all.push_back(item.get<std::string>());
        else
            in.fault(std::string(what) + " must hold strings alone");
    }
    return all;
}

CpuList list(JsonReader& in, const char* key) {
    const auto parsed = CpuList::parse(in.string_or(key, ""));
    if (parsed) return *parsed;
    in.fault("member '" + std::string(key) + "' is no list of CPUs: " + parsed.error().why);
    return {};
}

std::optional<SpeculationWish> wish(JsonReader& in, const char* key) {
    const std::string text = in.string_or(key, "");
    if (text.empty()) return std::nullopt;
    const auto parsed = parse_speculation_wish(text);
    if (parsed) return *parsed;
    in.fault("member '" + std::string(key) + "' must be enable, disable or force_disable");
    return std::nullopt;
}

HelperVerb decode_helper_verb(JsonReader& in, const Json& m, const std::string& verb, std::size_t& fds_wanted) {
    fds_wanted = verb == "write_file" ? 1 : 0;
    if (verb == "begin_run") {
        only(in, m, {"run_id", "attempt", "most_processes"});
        return BeginRun{run_name(in), in.has("most_processes") ? bounded(in, "most_processes", 0, 1'000'000) : 0};
    }
    if (verb == "end_run") {
        only(in, m, {"run_id", "remove_directory"});
        return EndRun{bounded(in, "run_id", 1, greatest_id), flag(in, "remove_directory")};
    }
    if (verb == "sweep") {
        only(in, m, {"remove_directories"});
        return Sweep{flag(in, "remove_directories")};
    }
    if (verb == "write_file") {
        only(in, m, {"run_id", "attempt", "path", "mode"});
        return WriteFile{run_name(in), path(in), static_cast<int>(bounded(in, "mode", 0, 0777))};
    }
    if (verb == "open_file") {
        only(in, m, {"run_id", "attempt", "path"});
        return OpenFile{run_name(in), path(in)};
    }
    if (verb == "open_counts") {
        only(in, m, {"cpus"});
        return OpenCounts{list(in, "cpus")};
    }
    only(in, m, {});
    if (verb != "facts") in.fault("there is no such verb");
    return AskFacts{};
}

SpawnOrder decode_order(JsonReader& in, std::size_t& fds_wanted) {
    SpawnOrder order;
    order.name = in.string("name");
    order.role = in.string("role");
    if (!is_name(order.name) || !is_name(order.role))
        in.fault("name and role must be 1-64 of a-z A-Z 0-9 . _ -, not beginning with a dot");
    order.argv = strings(in, in.array("argv"), "argv");
    if (order.argv.empty()) in.fault("argv is empty");
    for (const auto& pair : in.array("environment")) { // pairs keep the order and say nothing twice
        const auto both = pair.is_array() ? strings(in, pair, "environment") : std::vector<std::string>();
        if (both.size() == 2)
            order.environment.emplace_back(both[0], both[1]);
        else
            in.fault("environment must hold pairs of name and value");
    }
    order.directory = in.string_or("directory", "");
    if (!order.directory.empty() && !order.directory.starts_with('/'))
        if (const auto parts = split_path(order.directory); !parts) in.fault("directory: " + parts.error().why);
    order.cpus = list(in, "cpus");
    order.memory_nodes = list(in, "memory_nodes");
    order.speculation.indirect_branch = wish(in, "indirect_branch");
    order.speculation.store_bypass = wish(in, "store_bypass");
    int next = 0;
    if (flag(in, "stdin")) order.stdin_fd = next++;
    if (flag(in, "stdout")) order.stdout_fd = next++;
    if (flag(in, "stderr")) order.stderr_fd = next++;
    fds_wanted = static_cast<std::size_t>(next);
    return order;
}

GuardianVerb decode_guardian_verb(JsonReader& in, const Json& m, const std::string& verb, std::size_t& fds_wanted) {
    fds_wanted = 0;
    if (verb == "spawn") {
        only(in, m,
             {"name", "role", "argv", "environment", "directory", "cpus", "memory_nodes", "indirect_branch",
              "store_bypass", "stdin", "stdout", "stderr"});
        return decode_order(in, fds_wanted);
    }
    if (verb == "signal") {
        only(in, m, {"pid", "signal"});
        SignalProcess signal{static_cast<pid_t>(bounded(in, "pid", 2, INT32_MAX)),
                             static_cast<int>(bounded(in, "signal", 1, 31))};
        constexpr int allowed[] = {SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGSTOP};
        if (std::find(std::begin(allowed), std::end(allowed), signal.signal) == std::end(allowed))
            in.fault("this signal is not sent to workloads");
        return signal;
    }
    only(in, m, {});
    if (verb != "end") in.fault("there is no such verb");
    return EndThisRun{};
}

template <class Verb, class Decode>
Result<Request<Verb>> decode(std::string_view text, std::size_t fds, Decode decode_verb) {
    PERFRIG_TRY(const Json message, parse_json(text, "a request"));
    const std::string verb = message.is_object() && message.contains("verb") && message["verb"].is_string()
                                 ? message["verb"].get<std::string>().substr(0, 40)
                                 : "";
    JsonReader in(message, "the request '" + verb + "'");
    const std::int64_t id = bounded(in, "id", 0, greatest_id);
    std::size_t fds_wanted = 0;
    Request<Verb> request{id, decode_verb(in, message, verb, fds_wanted)};
    if (fds != fds_wanted)
        in.fault("it needs " + std::to_string(fds_wanted) + " descriptors and came with " + std::to_string(fds));
    PERFRIG_CHECK(in.finish());
    return request;
}

} // namespace

std::string RunName::text() const { return "run-" + std::to_string(run_id) + "-" + std::to_string(attempt); }

std::optional<RunName> parse_run_name(std::string_view text) {
    if (!text.starts_with("run-")) return std::nullopt;
    RunName run;
    const char* const end = text.data() + text.size();
    const auto [dash, bad_id] = std::from_chars(text.data() + 4, end, run.run_id);
    if (bad_id != std::errc() || dash == end || *dash != '-') return std::nullopt;
    const auto [last, bad_attempt] = std::from_chars(dash + 1, end, run.attempt);
    if (bad_attempt != std::errc() || last != end || run.run_id < 1 || run.attempt < 1) return std::nullopt;
    return run.text() == text ? std::optional(run) : std::nullopt; // one spelling alone
}

Result<std::vector<std::string>> split_path(std::string_view text) {
    const auto refuse = [&](std::string why) {
        return fail(ErrorKind::bad_input, "use the path", std::string(text.substr(0, 200)), std::move(why),
                    "give a path relative to the run's directory");
    };
    if (text.empty() || text.size() > most_path_bytes) return refuse("a path must have 1 to 1024 bytes");
    if (text.front() == '/') return refuse("it is absolute");
    if (text.find('\0') != std::string_view::npos) return refuse("it holds a zero byte");
    std::vector<std::string> parts;
    for (;;) {
        const auto slash = text.find('/');
        const std::string_view part = text.substr(0, slash);
        if (part.empty() || part == "." || part == "..") return refuse("it has a part that is empty, '.' or '..'");
        parts.emplace_back(part);
        if (slash == std::string_view::npos) return parts;
        text.remove_prefix(slash + 1);
    }
}

Result<Request<HelperVerb>> decode_helper_request(std::string_view text, std::size_t fds) {
    return decode<HelperVerb>(text, fds, decode_helper_verb);
}

Result<Request<GuardianVerb>> decode_guardian_request(std::string_view text, std::size_t fds) {
    return decode<GuardianVerb>(text, fds, decode_guardian_verb);
}

std::int64_t request_id(std::string_view text) {
    const auto message = parse_json(text, "a request");
    if (!message || !message->is_object()) return 0;
    JsonReader in(*message, "a request");
    const std::int64_t id = in.integer_or("id", 0);
    return id >= 0 && id <= greatest_id ? id : 0;
}

} // namespace perfrig
