#include "controller/cli/laptop.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/process/child.hpp"
#include "controller/cli/client.hpp"
#include "controller/cli/default_profile.hpp"
#include "controller/cli/private_postgres.hpp"
#include "controller/cli/unfinished.hpp"
#include "controller/cli/up_processes.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sched.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace perfrig::cli {

namespace {

constexpr Milliseconds start_time{60'000};

class Laptop {
  public:
    explicit Laptop(LaptopOptions options) : o_(std::move(options)), url_("http://" + o_.listen) {}
    Result<std::string> up();

  private:
    Result<void> find_users();
    Result<void> make_folders();
    Result<void> make_folder(const std::string& path, mode_t mode);
    Result<std::string> for_the_user(const std::string& name);
    Result<void> own(const std::string& path) const; // gives a file that root made to the user
    Result<std::string> token(const std::string& name);
    Result<void> check_not_elsewhere();
    Result<void> lead_agent_here(const std::string& path) const;
    Result<void> write_agent_config();
    Result<void> start(const std::string& name, std::vector<std::string> argv, std::optional<User> user);
    Result<void> start_controller();
    Result<void> start_agent();
    Result<Client> client();
    Result<void> wait_until(const std::string& what, const std::string& log, const std::function<bool()>& done);

    LaptopOptions o_;
    std::string url_;
    std::optional<User> user_;
    std::map<std::string, UpProcess> processes_;
};

Result<void> Laptop::find_users() {
    if (::geteuid() != 0) return {};
    for (const std::string& name : {o_.user, o_.workload_user}) {
        auto found = find_user(FileTree(), name);
        if (!found) {
            Error error = std::move(found).error();
            error.remedy = "make it with `useradd --system --no-create-home " + name +
                           "`, or name others with --user and --workload-user";
            return error;
        }
        if (name == o_.user) user_ = *found;
    }
    return {};
}

Result<void> Laptop::own(const std::string& path) const {
    if (user_ && ::chown(path.c_str(), user_->uid, user_->gid) != 0)
        return fail_errno(errno, "give to user " + o_.user, path);
    return {};
}

Result<void> Laptop::make_folder(const std::string& path, mode_t mode) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error)
        return fail(ErrorKind::unavailable, "make the folder", path, error.message(), "choose another with --dir");
    if (::chmod(path.c_str(), mode) != 0) return fail_errno(errno, "set the mode of", path);
    return own(path);
}

// Root's build may lie where the user that runs a program can't look, in /root for one: that user gets a copy. What
// root itself runs is never such a copy, since that user may write it.
Result<std::string> Laptop::for_the_user(const std::string& name) {
    const std::string from = o_.programs + "/" + name, to = o_.folder + "/bin/" + name;
    if (!user_) return from;
    PERFRIG_TRY(const std::string program, read_file(from, std::size_t{1} << 30)); // instrumented builds have 200 MB
    PERFRIG_CHECK(make_folder(o_.folder + "/bin", 0755));
    PERFRIG_CHECK(write_file_atomically(to, program, 0755));
    PERFRIG_CHECK(own(to));
    return to;
}

Result<void> Laptop::make_folders() {
    // The run directories lie below agent/, and workloads of another user must be able to get there.
    PERFRIG_CHECK(make_folder(o_.folder, 0755));
    for (const char* name : {"/postgres", "/tokens", "/logs"}) PERFRIG_CHECK(make_folder(o_.folder + name, 0700));
    return make_folder(o_.folder + "/agent", 0755);
}

// A secret of our own making: kept where it exists, so that up after down is the same installation.
Result<std::string> Laptop::token(const std::string& name) {
    const std::string path = o_.folder + "/tokens/" + name;
    if (::access(path.c_str(), F_OK) != 0) {
        PERFRIG_CHECK(write_file_atomically(path, random_hex(32) + "\n", 0600));
        PERFRIG_CHECK(own(path));
    }
    return path;
}

// The file is its owner's, but for the line that says where this controller is.
Result<void> Laptop::lead_agent_here(const std::string& path) const {
    static constexpr std::string_view key = "\ncontroller: ";
    PERFRIG_TRY(std::string text, read_file(path));
    std::size_t at = ("\n" + text).find(key);
    if (at == std::string::npos) return {};
    at += key.size() - 1;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.substr(at, end - at) == url_) return {};
    PERFRIG_CHECK(write_file_atomically(path, text.replace(at, end - at, url_), 0644));
    return own(path);
}

// Else client.json would name a controller that is not there, and the agent wait for it.
Result<void> Laptop::check_not_elsewhere() {
    const auto known = processes_.find("controller");
    const auto text = read_file(o_.folder + "/client.json");
    if (known == processes_.end() || !alive(known->second) || !text) return {};
    PERFRIG_TRY(const Json json, parse_json(*text, o_.folder + "/client.json"));
    const std::string at = json.value("url", url_);
    if (at == url_) return {};
    return fail(ErrorKind::bad_input, "start the controller at", url_, "it is up already, at " + at,
                "call perfrig down first");
}

Result<void> Laptop::write_agent_config() {
    const std::string path = o_.folder + "/agent.yaml";
    if (::access(path.c_str(), F_OK) == 0) return lead_agent_here(path);
    PERFRIG_TRY(const Topology topology, read_topology(FileTree()));
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CpuList allowed = topology.online;
    if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
        CpuList own_cpus;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &mask)) own_cpus.add(cpu);
        allowed = allowed.both(own_cpus);
    }
    const Profile profile = default_profile(topology, allowed);
    std::string text =
        "# The agent of this machine, as `perfrig up` made it. The profile is yours to edit: which CPUs each\n"
        "# role gets, and which roles may share CPUs (every run then says so).\n"
        "controller: " +
        url_ + "\nname: " + o_.machine + "\nstate_dir: " + Json(o_.folder + "/agent").dump() + "\n" +
        "metrics_listen: " + o_.metrics_listen + "\n";
    if (user_) text += "user: " + o_.user + "\nworkload_user: " + o_.workload_user + "\n";
    text += "profile:\n  roles:\n";
    for (const auto& [role, cpus] : profile.roles) text += "    " + role + ": \"" + cpus.text() + "\"\n";
    if (!profile.share.empty()) {
        text += "  share:\n";
        for (const auto& group : profile.share) {
            std::string roles;
            for (const std::string& role : group) roles += (roles.empty() ? "" : ", ") + role;
            text += "    - [" + roles + "]\n";
        }
    }
    PERFRIG_CHECK(write_file_atomically(path, text, 0644));
    return own(path);
}

Result<void> Laptop::start(const std::string& name, std::vector<std::string> argv, std::optional<User> user) {
    if (const auto known = processes_.find(name); known != processes_.end() && alive(known->second)) return {};
    const std::string log = o_.folder + "/logs/" + name + ".log";
    const UniqueFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!out) return fail_errno(errno, "write the log", log);
    PERFRIG_CHECK(own(log));
    SpawnRequest request;
    request.argv = std::move(argv);
    request.environment = current_environment();
    request.directory = o_.folder;
    request.stdout_fd = request.stderr_fd = out.get();
    request.user = std::move(user);
    PERFRIG_TRY(Child child, Child::start(request));
    PERFRIG_TRY(const UpProcess process, identify(child.pid()));
    child.release(); // it is up.json's now: down ends it
    processes_[name] = process;
    return write_up_file(o_.folder + "/up.json", processes_);
}

Result<void> Laptop::wait_until(const std::string& what, const std::string& program,
                                const std::function<bool()>& done) {
    for (const Deadline deadline = Deadline::in(start_time); !done(); std::this_thread::sleep_for(Milliseconds(50))) {
        const bool died = !alive(processes_[program]);
        if (!died && !deadline.passed()) continue;
        const std::string log = o_.folder + "/logs/" + program + ".log";
        const auto said = read_file(log);
        const std::size_t tail = said ? said->size() - std::min<std::size_t>(said->size(), 1500) : 0;
        return fail(ErrorKind::unavailable, "bring up", what,
                    (died ? "it ended; its log says:\n" : "it did not answer within 60 s; its log says:\n") +
                        (said ? said->substr(tail) : ""),
                    "see " + log);
    }
    return {};
}

Result<Client> Laptop::client() {
    PERFRIG_TRY(Connection connection, find_connection(url_, o_.folder + "/tokens/user", o_.folder));
    return Client(std::move(connection));
}

Result<void> Laptop::start_controller() {
    PERFRIG_TRY(const std::string user_token, token("user"));
    PERFRIG_TRY(const std::string program, for_the_user("perfrig-controller"));
    const PrivatePostgres postgres(o_.folder + "/postgres", user_);
    PERFRIG_CHECK(start(
        "controller",
        {program, "--listen", o_.listen, "--database", postgres.connection_string(), "--admin-token-file", user_token},
        user_));
    const Json where = {{"url", url_}, {"token_file", user_token}};
    PERFRIG_CHECK(write_file_atomically(o_.folder + "/client.json", where.dump(2) + "\n", 0644));
    PERFRIG_CHECK(own(o_.folder + "/client.json"));
    PERFRIG_TRY(const Client asking, client());
    return wait_until("the controller at " + url_, "controller",
                      [&] { return asking.get("/api/v1/machines", Milliseconds(2'000)).has_value(); });
}

Result<void> Laptop::start_agent() {
    PERFRIG_CHECK(write_agent_config());
    PERFRIG_TRY(const Client asking, client());
    const std::string program = o_.programs + "/perfrig-agent", config = o_.folder + "/agent.yaml";
    if (::access((o_.folder + "/tokens/scrape").c_str(), F_OK) != 0) {
        PERFRIG_TRY(const Json made, asking.post("/api/v1/tokens", {{"kind", "scrape"}, {"label", "perfrig up"}}));
        PERFRIG_CHECK(write_file_atomically(o_.folder + "/tokens/scrape", made.value("token", "") + "\n", 0600));
        PERFRIG_CHECK(own(o_.folder + "/tokens/scrape"));
    }
    if (::access((o_.folder + "/agent/token").c_str(), F_OK) != 0) {
        PERFRIG_TRY(const Json made, asking.post("/api/v1/tokens", {{"kind", "join"}, {"label", "perfrig up"}}));
        PERFRIG_TRY(const std::string joining, for_the_user("perfrig-agent"));
        CommandOptions options;
        options.user = user_;
        options.environment = current_environment();
        options.environment.emplace_back("PERFRIG_JOIN_TOKEN", made.value("token", ""));
        PERFRIG_TRY(const CommandResult joined, run_command({joining, "join", url_, "--config", config},
                                                            Deadline::in(Milliseconds(30'000)), options));
        if (!joined.exit.good())
            return fail(ErrorKind::unavailable, "enrol this machine at", url_, joined.out + joined.err);
    }
    PERFRIG_CHECK(start("agent", {program, "run", "--config", config}, std::nullopt));
    return wait_until("the agent", "agent", [&] {
        const auto machine = asking.get("/api/v1/machines/" + o_.machine, Milliseconds(2'000));
        return machine && machine->value("connected", false);
    });
}

Result<std::string> Laptop::up() {
    PERFRIG_CHECK(find_users());
    PERFRIG_CHECK(make_folders());
    PERFRIG_TRY(const UniqueFd alone, lock_folder(o_.folder));
    PERFRIG_TRY(processes_, read_up_file(o_.folder + "/up.json"));
    PERFRIG_CHECK(check_not_elsewhere());
    PERFRIG_CHECK(PrivatePostgres(o_.folder + "/postgres", user_).start());
    PERFRIG_CHECK(start_controller());
    PERFRIG_CHECK(start_agent());
    return "perfrig is up: controller at " + url_ + ", machine '" + o_.machine + "', everything in " + o_.folder +
           "\nend it with `perfrig " + (o_.folder == default_folder() ? "" : "--dir " + o_.folder + " ") + "down`";
}

} // namespace

std::string default_folder() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value ? value : "");
    };
    if (const std::string folder = variable("PERFRIG_DIR"); !folder.empty()) return folder;
    if (::geteuid() == 0) return "/var/lib/perfrig";
    if (const std::string state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/perfrig";
    return variable("HOME") + "/.local/state/perfrig";
}

Result<std::string> up(const LaptopOptions& options) { return Laptop(options).up(); }

namespace {

// The helper notes each run that it begins and strikes the note when nothing of the run is left. A note that is still
// there says that helper and guardian were both killed: only the next helper ends what lives in the run.
std::string unended_runs(const std::string& folder) {
    std::string runs;
    std::error_code error;
    for (const auto& note : std::filesystem::directory_iterator(folder + "/agent/work/.runs", error))
        runs += (runs.empty() ? "" : ", ") + note.path().filename().string();
    return runs;
}

} // namespace

Result<std::string> down(const std::string& folder, bool forget) {
    const std::string file = folder + "/up.json";
    UniqueFd alone;
    if (::access(folder.c_str(), F_OK) == 0) {
        PERFRIG_TRY(alone, lock_folder(folder));
    }
    PERFRIG_TRY(const auto processes, read_up_file(file));
    const std::string left = forget ? "" : unfinished_text(folder);
    for (const char* name : {"agent", "controller"})
        if (const auto found = processes.find(name); found != processes.end())
            PERFRIG_CHECK(end_process(found->second, Milliseconds(20'000)));
    struct stat owner {};
    const std::string data = folder + "/postgres";
    if (::stat(data.c_str(), &owner) == 0) {
        std::optional<User> user;
        if (::geteuid() == 0 && owner.st_uid != 0) {
            PERFRIG_TRY(user, find_user(FileTree(), std::to_string(owner.st_uid) + ":" + std::to_string(owner.st_gid)));
        }
        PERFRIG_CHECK(PrivatePostgres(data, user).stop());
    }
    ::unlink(file.c_str());
    // A helper that outlived a killed agent takes a moment.
    for (const auto deadline = Deadline::in(Milliseconds(3'000)); !unended_runs(folder).empty() && !deadline.passed();)
        std::this_thread::sleep_for(Milliseconds(50));
    if (const std::string runs = unended_runs(folder); !runs.empty())
        return fail(ErrorKind::unavailable, "end all of", folder,
                    "nobody was left to end " + runs + ": its processes may still run",
                    "start it again with `perfrig up`, which ends them, and then end it once more");
    if (!forget) return "perfrig is down; its data stays in " + folder + (left.empty() ? "" : "\n" + left);
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) return fail(ErrorKind::unavailable, "remove", folder, error.message());
    return "perfrig is down and " + folder + " is removed";
}

} // namespace perfrig::cli
