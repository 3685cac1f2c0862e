#include "agent/setup/machine_parts.hpp"

#include "common/base/log.hpp"
#include "common/process/affinity.hpp"
#include "common/process/users.hpp"

#include <cerrno>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>

namespace perfrig {

namespace {

// Where root starts the agent, the state directory must belong to what the agent becomes.
Result<void> hand_over(const StateDir& state, const std::string& user_name) {
    if (::geteuid() != 0 || user_name.empty()) return {};
    PERFRIG_TRY(const User user, find_user(FileTree(), user_name));
    return state.give_to(user.uid, user.gid);
}

// Collectors keep three files a thread of the workload open. Only ours: what the helper starts keeps its limit.
void allow_many_files() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) log::warning("the limit of open files can't be raised");
}

CpuList monitor_cpus(const AgentConfig& config) {
    const auto found = config.profile.roles.find("monitor");
    return found == config.profile.roles.end() ? CpuList() : found->second;
}

Result<HelperFacts> wait_for_facts(HelperClient& helper) { return helper.facts(Deadline::in(Milliseconds(20'000))); }

std::string summary_of(const HelperFacts& facts) {
    return "kill: " + facts.kill + ", cpuset: " + facts.cpuset + (facts.privileged ? "" : ", without root");
}

} // namespace

Result<std::unique_ptr<MachineParts>> MachineParts::make(const AgentConfig& config) {
    if (::geteuid() == 0 && (config.user.empty() || config.workload_user.empty()))
        return fail(ErrorKind::bad_input, "start the agent as root", config.file,
                    "'user' and 'workload_user' are not both set",
                    "name two users that aren't root: what the agent becomes, and what workloads run as");
    PERFRIG_TRY(StateDir state, StateDir::lock(config.state_dir));
    PERFRIG_CHECK(hand_over(state, config.user));
    HelperConfig helper_config;
    helper_config.state_directory = config.state_dir;
    helper_config.work_base = config.work_dir;
    helper_config.agent_user = config.user;
    helper_config.workload_user = config.workload_user;
    PERFRIG_TRY(HelperClient helper, start_helper(helper_config)); // from here on we are the agent's user
    allow_many_files();
    // Every thread of ours keeps to the monitor's CPUs; the helper doesn't, it starts the workloads.
    if (const CpuList monitor = monitor_cpus(config); !monitor.empty() && !pin_this_thread(monitor))
        log::warning("the agent can't keep to the monitor's CPUs " + monitor.text());
    PERFRIG_TRY(HelperFacts facts, wait_for_facts(helper));
    auto counts = helper.open_counts(monitor_cpus(config), Deadline::in(Milliseconds(20'000)));
    if (!counts) {
        PERFRIG_CHECK(helper.check_alive());
        log::info("switches of threads are read from /proc, which costs more: " + counts.error().text());
    }
    // On a disk that our own spool filled, only a start can send it away: the ballast is for that too.
    auto counted = state.next_epoch();
    if (!counted && ::unlink(state.file("spool/ballast").c_str()) == 0) counted = state.next_epoch();
    if (!counted) return counted.error();
    const std::int64_t epoch = *counted;
    PERFRIG_TRY(auto spool, Spool::open(state.file("spool"), epoch, config.spool));
    for (const SpoolDamage& damage : spool->take_damage())
        log::error("the spool of epoch " + std::to_string(damage.epoch) + " is damaged behind record " +
                   std::to_string(damage.after_seq) + ": " + std::to_string(damage.bytes) + " bytes can't be read");
    return std::unique_ptr<MachineParts>(new MachineParts(config, std::move(state), std::move(helper), std::move(facts),
                                                          std::move(spool), counts ? std::move(*counts) : UniqueFd()));
}

MachineParts::MachineParts(const AgentConfig& config, StateDir lock, HelperClient client, HelperFacts found,
                           std::unique_ptr<Spool> opened, UniqueFd counts)
    : state(std::move(lock)), helper(std::move(client)), facts(std::move(found)), spool(std::move(opened)),
      thread_source(counts ? "taskstats" : "proc"), collectors(FileTree(), clock, std::move(counts)),
      sampler(collectors, monitor_cpus(config)), machine{FileTree(),
                                                         clock,
                                                         helper,
                                                         collectors,
                                                         sampler,
                                                         *spool,
                                                         ArtifactStore(state.file("artifacts")),
                                                         config.profile,
                                                         state.file("logs"),
                                                         summary_of(facts),
                                                         config.search_path,
                                                         thread_source} {}

} // namespace perfrig
