#include "controller/cli/private_postgres.hpp"

#include "common/base/file_tree.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig::cli {

namespace {

constexpr int oldest_version = 15;

// sockaddr_un holds 108 bytes, and the socket's name is ".s.PGSQL.5432".
constexpr std::size_t longest_socket_folder = 107 - 14;

std::vector<std::string> candidate_folders() {
    std::vector<std::string> out;
    const FileTree tree;
    for (const char* base : {"/usr/lib/postgresql", "/usr"}) {
        const auto names = tree.list(base);
        if (!names) continue;
        for (auto name = names->rbegin(); name != names->rend(); ++name) {
            if (std::string_view(base) == "/usr" && !name->starts_with("pgsql-")) continue;
            out.push_back(std::string(base) + "/" + *name + "/bin");
        }
    }
    out.push_back("/usr/bin");
    out.push_back("/usr/local/bin");
    return out;
}

// The number of "initdb (PostgreSQL) 15.18 (Debian ...)".
int major_version(std::string_view text) {
    const auto at = text.find("(PostgreSQL) ");
    int version = 0;
    if (at != std::string_view::npos) std::from_chars(text.data() + at + 13, text.data() + text.size(), version);
    return version;
}

// Between two marks, with what must not stand there replaced.
std::string quoted(std::string_view text, std::string_view mark, const std::map<char, std::string>& replaced) {
    std::string out(mark);
    for (const char c : text) {
        const auto found = replaced.find(c);
        out += found == replaced.end() ? std::string(1, c) : found->second;
    }
    return out.append(mark);
}

} // namespace

PrivatePostgres::PrivatePostgres(std::string folder, std::optional<User> user)
    : folder_(std::move(folder)), user_(std::move(user)) {}

std::string PrivatePostgres::connection_string() const {
    return "host=" + quoted(folder_, "'", {{'\\', "\\\\"}, {'\'', "\\'"}}) + " user=perfrig dbname=postgres";
}

Result<std::string> PrivatePostgres::find_programs() const {
    std::string seen;
    for (const std::string& folder : candidate_folders()) {
        const std::string initdb = folder + "/initdb";
        if (::access(initdb.c_str(), X_OK) != 0 || ::access((folder + "/pg_ctl").c_str(), X_OK) != 0) continue;
        PERFRIG_TRY(const CommandResult asked, run_command({initdb, "--version"}, Deadline::in(Milliseconds(10'000))));
        if (major_version(asked.out) >= oldest_version) return folder;
        seen += " " + initdb + " is version " + std::to_string(major_version(asked.out)) + ";";
    }
    return fail(ErrorKind::not_found, "find PostgreSQL's initdb and pg_ctl", "",
                "none of version 15 or newer is installed;" + seen,
                "install PostgreSQL's server (Debian: postgresql-15; Fedora: postgresql-server)");
}

Result<CommandResult> PrivatePostgres::pg_ctl(std::vector<std::string> arguments, Milliseconds within) const {
    PERFRIG_TRY(const std::string programs, find_programs());
    // Relative: pg_ctl puts names into a shell's double quotes, where $ has a meaning.
    std::vector<std::string> argv{programs + "/pg_ctl", "-D", "data"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    CommandOptions options;
    options.user = user_;
    options.directory = folder_;
    options.environment = {{"PATH", programs + ":/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}};
    options.wait_for_output = false; // the server that it starts keeps its output open
    return run_command(std::move(argv), Deadline::in(within), options);
}

bool PrivatePostgres::running() const {
    const auto status = pg_ctl({"status"}, Milliseconds(10'000));
    return status && status->exit.good();
}

Result<void> PrivatePostgres::start() {
    if (folder_.find(',') != std::string::npos) // libpq parts hosts by it, and knows no escape
        return fail(ErrorKind::bad_input, "start PostgreSQL in", folder_, "the path holds a comma",
                    "choose another folder with --dir");
    if (folder_.size() > longest_socket_folder)
        return fail(ErrorKind::bad_input, "start PostgreSQL in", folder_,
                    "the path is too long for a Unix socket (at most " + std::to_string(longest_socket_folder) +
                        " bytes)",
                    "choose a shorter folder with --dir");
    PERFRIG_TRY(const std::string programs, find_programs());
    if (::access((folder_ + "/data/PG_VERSION").c_str(), F_OK) != 0) {
        CommandOptions options;
        options.user = user_;
        options.directory = folder_;
        options.environment = {{"PATH", programs + ":/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}};
        PERFRIG_TRY(const CommandResult made, run_command({programs + "/initdb", "-D", folder_ + "/data", "-U",
                                                           "perfrig", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"},
                                                          Deadline::in(Milliseconds(120'000)), options));
        if (!made.exit.good())
            return fail(ErrorKind::unavailable, "make a PostgreSQL cluster in", folder_ + "/data", made.err);
    }
    if (running()) return {};
    // pg_ctl hands its options to a shell, and the server takes a list of folders, whose commas and blanks count.
    const std::string for_the_shell = quoted(quoted(folder_, "\"", {{'"', "\"\""}}), "'", {{'\'', "'\\''"}});
    PERFRIG_TRY(const CommandResult started,
                pg_ctl({"-w", "-t", "60", "-l", "log", "-o",
                        "-c listen_addresses= -c unix_socket_directories=" + for_the_shell, "start"},
                       Milliseconds(90'000)));
    if (!started.exit.good()) {
        const auto log = read_file(folder_ + "/log");
        return fail(ErrorKind::unavailable, "start PostgreSQL in", folder_,
                    log ? log->substr(log->size() - std::min<std::size_t>(log->size(), 2000)) : started.out);
    }
    return {};
}

Result<void> PrivatePostgres::stop() {
    if (::access((folder_ + "/data/PG_VERSION").c_str(), F_OK) != 0 || !running()) return {};
    PERFRIG_TRY(const CommandResult stopped, pg_ctl({"-m", "fast", "-w", "-t", "60", "stop"}, Milliseconds(90'000)));
    if (!stopped.exit.good())
        return fail(ErrorKind::unavailable, "stop PostgreSQL in", folder_, stopped.out + stopped.err);
    return {};
}

} // namespace perfrig::cli
