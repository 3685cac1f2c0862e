#include "agent/setup/doctor.hpp"

#include "agent/helper/cgroup.hpp"
#include "agent/run/run_checks.hpp"
#include "common/net/http_client.hpp"
#include "common/process/run_command.hpp"
#include "common/process/speculation.hpp"
#include "common/process/thread_counts.hpp"
#include "common/process/users.hpp"
#include "common/topology/topology.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <unistd.h>

namespace perfrig {

namespace asio = boost::asio;

namespace {

using Grade = Diagnosis::Grade;
constexpr Milliseconds tool_time{10'000};
constexpr Milliseconds controller_time{5'000};

// Without a configuration what it would have to say is missing, not wrong.
Grade missing_setting(const AgentConfig& config) { return config.file.empty() ? Grade::note : Grade::bad; }

Diagnosis examine_users(const AgentConfig& config, const FileTree& tree) {
    if (::geteuid() != 0)
        return {Grade::note, "privileges",
                "not started by root: workloads run as this user; the helper can do what this user can",
                "start it by root, with 'user' and 'workload_user', to keep workloads apart"};
    for (const auto& [setting, name] :
         {std::pair("user", config.user), std::pair("workload_user", config.workload_user)}) {
        if (name.empty())
            return {missing_setting(config), "privileges",
                    std::string("started by root, but '") + setting + "' is not set",
                    "name a user that isn't root: workloads never run as root silently"};
        const auto user = find_user(tree, name);
        if (!user) return {Grade::bad, "privileges", user.error().text(), "useradd --system " + name};
        if (user->uid == 0)
            return {Grade::bad, "privileges", std::string("'") + setting + "' is root", "name another user"};
    }
    return {Grade::good, "privileges",
            "helper as root, agent as " + config.user + ", workloads as " + config.workload_user, ""};
}

Diagnosis examine_cgroups(const AgentConfig& config, const FileTree& tree) {
    const CgroupPlan plan = plan_cgroups(tree, config.state_dir, {::getpid()});
    const std::string text =
        "ending runs by " + std::string(to_string(plan.kill)) + ", CPUs by " +
        (plan.cpuset == CgroupCpuset::none ? "affinity alone" : "cpuset " + std::string(to_string(plan.cpuset))) +
        (plan.why.empty() ? "" : ": " + plan.why);
    const bool all = plan.kill != CgroupKill::none && plan.cpuset != CgroupCpuset::none;
    return {all ? Grade::good : Grade::note, "cgroups", text,
            all ? "" : "start the agent by root, or in a delegated cgroup"};
}

Diagnosis examine_speculation(SpeculationKind kind) {
    const std::string what = "speculation " + std::string(to_string(kind));
    constexpr SpeculationWish wish = SpeculationWish::force_disable;
    const auto verdict = probe_speculation(kind, wish);
    if (!verdict) return {Grade::note, what, verdict.error().text(), ""};
    if (verdict->granted()) return {Grade::good, what, "a process may force it off", ""};
    std::string words = verdict->words; // it names the control and the wish first, as `what` does
    const std::string named = std::string(to_string(kind)) + ": " + std::string(to_string(wish)) + ": ";
    if (words.starts_with(named)) words.erase(0, named.size());
    return {Grade::note, what, "a process can't force it off: " + words, "runs that ask for it are refused here"};
}

Diagnosis examine_tool(const AgentConfig& config, const std::string& program, const std::vector<std::string>& ask) {
    const std::string path = find_program(program, config.search_path);
    if (path.empty()) return {Grade::note, program, "not found in " + config.search_path, package_remedy(program)};
    CommandOptions options;
    options.environment = {{"PATH", config.search_path}, {"LC_ALL", "C"}};
    options.most_bytes = 16 << 10;
    std::vector<std::string> argv = {path};
    argv.insert(argv.end(), ask.begin(), ask.end());
    const auto answer = run_command(argv, Deadline::in(tool_time), options);
    if (!answer) return {Grade::note, program, answer.error().text(), package_remedy(program)};
    const std::string all = answer->out + answer->err;
    return {Grade::good, program, path + ", " + all.substr(0, all.find('\n')), ""};
}

Diagnosis examine_file(const FileTree& tree, const std::string& what, const std::string& path, const std::string& with,
                       const std::string& without) {
    const auto content = tree.read_line(path);
    if (content)
        return {Grade::good, what,
                with + (content->size() < 60 && content->find('\n') == std::string::npos ? ": " + *content : ""), ""};
    return {Grade::note, what, without, ""};
}

Diagnosis examine_state_dir(const AgentConfig& config) {
    const auto& folder = config.state_dir;
    if (::access(folder.c_str(), F_OK) != 0) {
        const std::string parent = std::filesystem::path(folder).parent_path();
        if (::access(parent.c_str(), W_OK) == 0) return {Grade::good, "state directory", folder + " will be made", ""};
        return {Grade::bad, "state directory", folder + " is not there and can't be made", "make it, or set state_dir"};
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0)
        return {Grade::bad, "state directory", folder + " can't be written", "chown it to the agent's user"};
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    if (!error && space.available < config.spool.event_reserve_bytes)
        return {Grade::bad, "state directory",
                folder + " has only " + std::to_string(space.available >> 20) + " MiB free", "free space"};
    return {Grade::good, "state directory", folder + " is writable", ""};
}

// One that this machine can hold: the last CPU for load and monitor, the others for app.
std::string example_profile(const CpuList& online) {
    const CpuList last{online.ids().back()};
    const bool one = online.size() == 1;
    return "profile: {roles: {app: \"" + (one ? last : online.without(last)).text() + "\", load: \"" + last.text() +
           "\", monitor: \"" + last.text() + "\"}, share: [[" + (one ? "app, " : "") + "load, monitor]]}";
}

Diagnosis examine_thread_source() {
    const auto stats = TaskStats::open();
    if (stats) return {Grade::good, "thread source", "taskstats: the switches of many threads are read at once", ""};
    return {Grade::note, "thread source", "files of /proc, which cost half as much again: " + stats.error().text(), ""};
}

std::vector<Diagnosis> examine_placement(const AgentConfig& config, const FileTree& tree) {
    const auto topology = read_topology(tree);
    if (!topology) return {{Grade::bad, "topology", topology.error().text(), ""}};
    std::vector<Diagnosis> out = {{Grade::good, "topology",
                                   std::to_string(topology->online.size()) + " CPUs (" + topology->online.text() +
                                       ") on " + std::to_string(topology->cores()) + " cores",
                                   ""}};
    if (config.profile.roles.empty()) {
        out.push_back({missing_setting(config), "profile", "no role has any CPUs: every run would be refused",
                       "add to the configuration: " + example_profile(topology->online)});
        return out;
    }
    std::string roles;
    for (const auto& [role, cpus] : config.profile.roles)
        roles += (roles.empty() ? "" : ", ") + role + " " + cpus.text();
    out.push_back({Grade::good, "profile", roles, ""});
    std::string shared; // one line for all pairs of roles that share CPUs by the profile's own word
    for (const PlacementFault& fault : check_placement(config.profile.roles, config.profile.share, *topology))
        if (fault.kind == PlacementFaultKind::shared)
            shared +=
                (shared.empty() ? "" : ", ") + fault.role + " and " + fault.other_role + " CPU " + fault.cpus.text();
        else
            out.push_back({fault.refusal ? Grade::bad : Grade::note, "profile", fault.message, fault.remedy});
    if (!shared.empty())
        out.push_back({Grade::note, "profile",
                       "as its `share` allows, roles share: " + shared + ", and every run says so",
                       "give them CPUs of their own for numbers that don't disturb each other"});
    return out;
}

} // namespace

Diagnosis examine_configuration(const AgentConfig& config) {
    if (!config.file.empty())
        return {Grade::good, "configuration",
                config.file + (config.file == config_of_up() ? ", as `perfrig up` wrote it" : ""), ""};
    return {Grade::note, "configuration",
            std::string("none: there is no ") + default_config_file +
                ", and `perfrig up` wrote none. Assumed: the name " + config.name + ", the state directory " +
                config.state_dir + ", no controller, no users, no roles",
            "--config FILE names one, `perfrig up` makes one"};
}

std::vector<Diagnosis> examine_machine(const AgentConfig& config, const FileTree& tree) {
    std::vector<Diagnosis> out = {examine_configuration(config), examine_users(config, tree), examine_state_dir(config),
                                  examine_cgroups(config, tree)};
    for (Diagnosis& one : examine_placement(config, tree)) out.push_back(std::move(one));
    out.push_back(examine_speculation(SpeculationKind::indirect_branch));
    out.push_back(examine_speculation(SpeculationKind::store_bypass));
    out.push_back(examine_tool(config, "wrk", {"-v"}));
    out.push_back(examine_tool(config, "pgbench", {"--version"}));
    out.push_back(examine_tool(config, "perf", {"--version"}));
    out.push_back(examine_file(tree, "frequency", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                               "the kernel tells it, governor", "no cpufreq here: frequencies are not sampled"));
    const bool waits = tree.exists("/proc/self/schedstat");
    out.push_back(
        {waits ? Grade::good : Grade::note, "schedstat",
         waits ? "run-queue wait of threads can be sampled" : "the kernel has none: run-queue wait is not sampled",
         ""});
    out.push_back(examine_thread_source());
    out.push_back(examine_file(tree, "pressure", "/proc/pressure/cpu", "the kernel tells pressure (PSI)",
                               "no PSI in this kernel"));
    out.push_back(examine_file(tree, "clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                               "the kernel uses", "unknown"));
    return out;
}

Diagnosis examine_controller(const AgentConfig& config) {
    if (config.controller.empty())
        return {missing_setting(config), "controller", "none is named, so none was asked",
                "set 'controller' in the configuration, or --controller URL"};
    const auto url = controller_url(config.controller);
    if (!url) return {Grade::bad, "controller", url.error().why, url.error().remedy};
    const auto healthy = http_request_blocking(url->with_target("/healthz"), HttpCall(), Deadline::in(controller_time));
    if (!healthy) return {Grade::bad, "controller", healthy.error().text(), "is it running there?"};
    const auto token = agent_token(config);
    if (!token)
        return {Grade::bad, "controller", url->text() + " answers; " + token.error().text(), token.error().remedy};
    // Who may write artifacts of a run that isn't there gets 404; who may not gets 401.
    HttpCall call;
    call.method = "HEAD";
    call.headers.add("Authorization", "Bearer " + *token);
    const auto known =
        http_request_blocking(url->with_target("/agent/v1/runs/0/artifacts/none"), call, Deadline::in(controller_time));
    if (known && (known->status == 401 || known->status == 403))
        return {Grade::bad, "controller",
                url->text() + " answers, but refuses the token (" + std::to_string(known->status) + ")",
                "enrol again: perfrig-agent join " + url->text()};
    return {Grade::good, "controller", url->text() + " answers, and knows the token", ""};
}

int doctor(const AgentConfig& config, std::ostream& out) {
    std::vector<Diagnosis> all = examine_machine(config, FileTree());
    all.push_back(examine_controller(config));
    int exit_code = 0;
    const bool configured = !config.file.empty();
    for (const Diagnosis& one : all) {
        const char* mark = one.grade == Grade::good ? "ok  " : one.grade == Grade::note ? "note" : "BAD ";
        out << mark << "  " << one.what << ": " << one.text << "\n";
        if (!one.remedy.empty()) out << "        -> " << one.remedy << "\n";
        if (one.grade == Grade::bad) exit_code = 1;
    }
    out << (exit_code != 0 ? "this machine can't work yet: see BAD above\n"
            : configured   ? "this machine can work\n"
                           : "nothing of this machine stands in the way; it can work once it has a configuration\n");
    return exit_code;
}

} // namespace perfrig
