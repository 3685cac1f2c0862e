#include "agent/run/run_processes.hpp"

#include "agent/collectors/proc_formats.hpp"
#include "agent/collectors/process_table.hpp"
#include "agent/run/run_checks.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <set>
#include <string_view>

namespace perfrig {

namespace {

constexpr Milliseconds spawn_time{20'000};  // of one process, through the guardian
constexpr Milliseconds look_every{50};      // for what no descriptor tells
constexpr Milliseconds ending_time{20'000}; // for the guardian to end everything

Environment environment_of(const RunMachine& machine, const std::string& directory,
                           const std::map<std::string, std::string>& own) {
    std::map<std::string, std::string> all = {
        {"PATH", machine.search_path}, {"HOME", directory}, {"TMPDIR", directory}, {"LANG", "C.UTF-8"}};
    for (const auto& [key, value] : own) all[key] = value;
    return {all.begin(), all.end()};
}

Json asked_json(const Speculation& wish) {
    Json json = Json::object();
    if (!wish.indirect_branch.empty()) json["indirect_branch"] = wish.indirect_branch;
    if (!wish.store_bypass.empty()) json["store_bypass"] = wish.store_bypass;
    return json;
}

Json read_back_json(const FileTree& tree, pid_t pid) {
    Json json = Json::object();
    const auto lines = read_speculation_lines(tree, pid);
    if (!lines) return json; // it has ended already, or the kernel prints no such lines: unknown, not off
    if (lines->indirect_branch) json["indirect_branch"] = *lines->indirect_branch;
    if (lines->store_bypass) json["store_bypass"] = *lines->store_bypass;
    return json;
}

// Letters that cgroup names may have; the ordinal keeps names apart.
std::string order_name(const std::string& name, int ordinal) {
    std::string out = std::to_string(ordinal) + "-";
    for (const char c : name) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '_' || c == '.';
        out.push_back(plain ? c : '_');
    }
    return out.substr(0, 64);
}

} // namespace

int signal_number(const std::string& name) {
    static const std::map<std::string, int> known = {{"HUP", SIGHUP},   {"INT", SIGINT},    {"QUIT", SIGQUIT},
                                                     {"KILL", SIGKILL}, {"USR1", SIGUSR1},  {"USR2", SIGUSR2},
                                                     {"TERM", SIGTERM}, {"WINCH", SIGWINCH}};
    const auto found = known.find(name.starts_with("SIG") ? name.substr(3) : name);
    return found == known.end() ? 0 : found->second;
}

std::vector<pid_t> pids_of(const FileTree& tree, const Spawned& spawned) {
    std::set<pid_t> pids;
    for (const std::string& folder : spawned.cgroups) {
        const auto text = tree.read(folder + "/cgroup.procs");
        if (!text) continue;
        const auto listed = parse_pid_lines(*text);
        if (listed)
            for (const std::int64_t pid : *listed) pids.insert(static_cast<pid_t>(pid));
    }
    if (!pids.empty()) return {pids.begin(), pids.end()};
    // Without a cgroup: what descends from it and what is in its process group.
    ProcessTable table(tree);
    SampleSink unread; // what can't be read of others is not ours
    table.refresh(unread);
    pids = table.family(spawned.pid, {spawned.pid});
    return {pids.begin(), pids.end()};
}

std::string RunProcess::last_words() const {
    std::string words;
    for (const auto& output : {err, out}) {
        if (!output) continue;
        const auto lines = output->last_lines();
        const std::size_t from = lines.size() > 5 ? lines.size() - 5 : 0;
        for (std::size_t i = from; i < lines.size(); ++i) words += (words.empty() ? "" : " | ") + lines[i];
    }
    if (words.size() > 2'000) words = words.substr(0, 2'000) + "...";
    return words.empty() ? std::string() : "; it last said: " + words;
}

RunProcesses::RunProcesses(const RunMachine& machine, RunGuard guard, RunRecorder& recorder, Interrupt& interrupt,
                           OutputPump& pump, std::vector<std::string> secrets)
    : machine_(machine), guard_(std::move(guard)), recorder_(recorder), interrupt_(interrupt), pump_(pump),
      secrets_(std::move(secrets)) {}

RunStep<std::shared_ptr<ProcessOutput>> RunProcesses::output(const StartOrder& order, int ordinal, const char* which,
                                                             const ProcessOutput::LineListener& listener,
                                                             UniqueFd& write_end) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fail_errno(errno, "make a pipe for", order.name));
    UniqueFd read_end(ends[0]);
    write_end.reset(ends[1]);
    auto log = BoundedLog::create(machine_.log_folder + "/" + std::to_string(ordinal) + "." + which,
                                  static_cast<std::uint64_t>(machine_.profile.limits.log_bytes));
    if (!log) return failed(log.error());
    auto made = std::make_shared<ProcessOutput>(std::move(*log), secrets_, listener);
    pump_.watch(std::move(read_end), made);
    return made;
}

RunStep<RunProcess*> RunProcesses::start(StartOrder order) {
    const int ordinal = static_cast<int>(processes_.size()) + 1;
    UniqueFd out_end, err_end;
    PERFRIG_TRY(auto out, output(order, ordinal, "out", order.on_out, out_end));
    PERFRIG_TRY(auto err, output(order, ordinal, "err", order.on_err, err_end));
    SpawnOrder spawn;
    spawn.name = order.cgroup.empty() ? order_name(order.name, ordinal) : order_name(order.cgroup, 0);
    spawn.role = order_name(order.role.empty() ? "none" : order.role, 0).substr(2);
    spawn.argv = order.argv;
    spawn.environment = environment_of(machine_, guard_.directory(), order.environment);
    spawn.directory = order.directory;
    spawn.cpus = order.cpus;
    spawn.memory_nodes = order.memory_nodes;
    PERFRIG_TRY(spawn.speculation, speculation_ask(order.speculation, order.name));
    spawn.stdout_fd = out_end.get();
    spawn.stderr_fd = err_end.get();
    auto spawned = guard_.spawn(spawn, Deadline::in(spawn_time));
    if (!spawned) {
        const bool refusal = spawned.error().kind == ErrorKind::forbidden && order.speculation.any();
        if (refusal) return refused(order.name + ": " + spawned.error().text());
        return guard_.lost() ? interrupted(spawned.error().text()) : failed(spawned.error());
    }
    const Json speculation = order.speculation.any() ? Json{{"asked", asked_json(order.speculation)},
                                                            {"read_back", read_back_json(machine_.tree, spawned->pid)}}
                                                     : Json::object();
    recorder_.event(protocol::ProcessStarted{
        ordinal, order.role, order.name, order.phase, spawned->pid, order.cpus.text(),
        spawned->cgroups.empty() ? std::string() : spawned->cgroups.front(), speculation, spawned->start_ns});
    if (spawned->cpuset == "none" && !order.cpus.empty())
        recorder_.finding("cpuset", "info", order.name,
                          "pinned by affinity alone, without a cpuset: " + spawned->cpuset_why);
    check_limit(*spawned);
    PlacementEvidence evidence(order.name, order.cpus);
    const bool must_live = order.must_live;
    processes_.push_back(
        std::make_unique<RunProcess>(RunProcess{ordinal, std::move(order), std::move(*spawned), std::move(out),
                                                std::move(err), std::nullopt, must_live, std::move(evidence)}));
    RunProcess& process = *processes_.back();
    if (process.order.sampled)
        machine_.collectors.watch({process.order.name, process.order.role, process.spawned.pid,
                                   process.spawned.cgroups.empty() ? std::string() : process.spawned.cgroups.front()});
    return &process;
}

// Once a run: how the profile's limit of processes holds, where it does not hold as it says.
void RunProcesses::check_limit(const Spawned& spawned) {
    const std::int64_t asked = machine_.profile.limits.processes;
    if (limit_told_ || spawned.processes_by == "cgroup") return;
    limit_told_ = true;
    const bool held = spawned.processes_by == "rlimit" && spawned.most_processes <= asked;
    recorder_.finding("process_limit", held ? "info" : "warning", "limits.processes",
                      held ? "limits.processes holds by RLIMIT_NPROC, since no pids cgroup is to be had: the kernel "
                             "counts every process and thread of the user that runs workloads, not those of the run"
                           : "limits.processes does not hold: neither a pids cgroup nor RLIMIT_NPROC could be set",
                      Json{{"asked", asked}, {"read_back", spawned.most_processes}});
}

void RunProcesses::exited(ProcessExited event) {
    for (const auto& process : processes_) {
        if (process->spawned.pid != event.pid || process->exited) continue;
        recorder_.event(protocol::ProcessEnded{process->ordinal, event.end_ns, event.status.text()});
        process->exited = std::move(event);
        if (process->order.sampled) machine_.collectors.unwatch(process->order.name);
        return;
    }
}

// Waits for an event of the guardian or an interrupt; true: something may have happened.
bool RunProcesses::take_events(Milliseconds at_most) {
    if (!guard_.has_event() && !guard_lost_) {
        pollfd polls[2] = {{guard_.event_fd(), POLLIN, 0}, {interrupt_.fd(), POLLIN, 0}};
        ::poll(polls, 2, static_cast<int>(at_most.count()));
        if (polls[0].revents == 0) return false;
    }
    while (!guard_lost_) {
        auto event = guard_.next_event(Deadline::in(Milliseconds(0)));
        if (!event) {
            if (event.error().kind != ErrorKind::timed_out) guard_lost_ = event.error().text();
            return true;
        }
        exited(std::move(*event));
    }
    return true;
}

RunStep<void> RunProcesses::look() {
    if (const auto cause = interrupt_.cause()) {
        switch (cause->kind) {
        case Interrupt::Kind::cancel: return RunStop{"cancelled", cause->reason};
        case Interrupt::Kind::broken: return RunStop{"failed", cause->reason};
        case Interrupt::Kind::shutdown:
        case Interrupt::Kind::lease_lost: return RunStop{"interrupted", cause->reason};
        }
    }
    if (guard_lost_) return interrupted("the guardian of the run was lost: " + *guard_lost_);
    for (const auto& process : processes_)
        if (process->must_live && process->exited)
            return failed("service '" + process->order.name + "' ended by itself (" +
                          (process->exited->status.good() ? "exit 0" : process->exited->status.text()) + ")" +
                          process->last_words());
    return {};
}

RunStep<bool> RunProcesses::wait(Deadline deadline, const std::function<bool()>& done) {
    while (true) {
        PERFRIG_CHECK(look());
        if (done && done()) return true;
        if (deadline.passed()) return false;
        // The interrupt's descriptor stays readable, so look() above has seen it before poll can spin on it.
        take_events(std::min(deadline.left() + Milliseconds(1), done ? look_every : Milliseconds(1'000)));
    }
}

RunStep<void> RunProcesses::pause(Milliseconds time) {
    PERFRIG_CHECK(wait(Deadline::in(time), {}));
    return {};
}

void RunProcesses::stop(RunProcess& process, const std::string& signal, Milliseconds grace) {
    expect_end(process);
    if (process.exited || guard_lost_) return;
    const auto wait_for_end = [&](Deadline deadline) { // an interrupt must not cut the grace short of its kill
        while (!process.exited && !deadline.passed() && !guard_lost_) {
            pollfd one = {guard_.event_fd(), POLLIN, 0};
            if (!guard_.has_event())
                ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(deadline.left().count() + 1, 200)));
            take_events(Milliseconds(0));
        }
    };
    const int number = signal_number(signal);
    (void)guard_.signal(process.spawned.pid, number == 0 ? SIGTERM : number, Deadline::in(Milliseconds(5'000)));
    wait_for_end(Deadline::in(grace));
    if (process.exited || guard_lost_) return;
    recorder_.finding("stop", "warning", process.order.name,
                      process.order.name + " did not end within " + std::to_string(grace.count()) + " ms of SIG" +
                          signal + " and was killed");
    (void)guard_.signal(process.spawned.pid, SIGKILL, Deadline::in(Milliseconds(5'000)));
    wait_for_end(Deadline::in(Milliseconds(5'000)));
}

void RunProcesses::read_affinities() {
    for (const auto& process : processes_) {
        if (process->exited || process->order.phase == "build") continue;
        const auto threads = perfrig::read_affinities(machine_.tree, pids_of(machine_.tree, process->spawned));
        if (!threads) continue; // what can't be read now is read at the next look; never read at all is a finding
        for (const ThreadAffinity& thread : *threads) process->evidence.add(thread);
    }
}

// A build's daemon, or what a warm-up put into the background, uses the run's CPUs beside what is measured, and counts
// as somebody else's. Without cgroups those are not found that left both parent and process group.
void RunProcesses::tell_left_running() {
    constexpr std::size_t most_named = 5;
    for (const auto& process : processes_) {
        if (!process->exited) continue;
        std::size_t count = 0;
        std::string names;
        for (const pid_t pid : pids_of(machine_.tree, process->spawned)) {
            const auto text = machine_.tree.read("/proc/" + std::to_string(pid) + "/stat");
            const auto stat = text ? parse_stat(*text) : Result<StatLine>(text.error());
            if (!stat || stat->state == 'Z' || stat->state == 'X') continue; // it has ended, or is about to
            if (++count <= most_named)
                names += (names.empty() ? "" : ", ") + std::string(stat->comm) + " (" + std::to_string(pid) + ")";
        }
        if (count == 0) continue;
        recorder_.finding("left_running", "warning", process->order.name,
                          process->order.name + " has ended, and " + std::to_string(count) +
                              " processes that it started have not: " + names + (count > most_named ? " ..." : "") +
                              "; what they use of the run's CPUs while it measures is no service's and no tool's "
                              "(end them there, or make a service of what is wanted)",
                          Json{{"phase", process->order.phase}, {"processes", count}});
    }
}

// What was collected by a name belongs to the last one started under it: a tool of measure, not the one that warmed up.
void RunProcesses::add_news(const AffinityNews& news) {
    std::map<std::string_view, RunProcess*> by_name;
    for (const auto& process : processes_)
        if (process->order.sampled) by_name[process->order.name] = process.get();
    for (const auto& [name, looks] : news.looks)
        if (const auto found = by_name.find(name); found != by_name.end()) found->second->evidence.looked(looks);
    for (const ThreadAffinity& change : news.changes)
        if (const auto found = by_name.find(change.process); found != by_name.end())
            found->second->evidence.add(change);
    if (news.left_out > 0)
        recorder_.finding("placement", "warning", "",
                          std::to_string(news.left_out) + " changes of affinity in one second were not looked at");
}

Result<RunEnded> RunProcesses::end_all() {
    for (const auto& process : processes_) expect_end(*process);
    auto ended = guard_.end(Deadline::in(ending_time));
    while (!guard_lost_) {
        auto event = guard_.next_event(Deadline::in(Milliseconds(0)));
        if (!event) break;
        exited(std::move(*event));
    }
    for (const auto& process : processes_)
        if (!process->exited && process->order.sampled) machine_.collectors.unwatch(process->order.name);
    return ended;
}

} // namespace perfrig
