#include "agent/helper/guardian.hpp"

#include "agent/helper/channel.hpp"
#include "agent/helper/descendants.hpp"
#include "agent/helper/leftovers.hpp"
#include "agent/helper/process_setup.hpp"
#include "agent/helper/requests.hpp"
#include "common/base/log.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <deque>
#include <map>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr std::size_t most_unread_packets = 8192; // an agent that reads so little is as good as gone
constexpr std::size_t most_spawned = 4096;        // in one run

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

class Guardian {
  public:
    Guardian(GuardianSetup setup, UniqueFd signals) : setup_(std::move(setup)), signals_(std::move(signals)) {}

    int run() {
        while (!over_) {
            const short want = outbox_.empty() ? POLLIN : POLLIN | POLLOUT;
            pollfd ready[2] = {{setup_.agent.get(), want, 0}, {signals_.get(), POLLIN, 0}};
            if (::poll(ready, 2, -1) < 0 && errno != EINTR) break;
            if (ready[1].revents) {
                drain_signals(signals_.get());
                reap();
            }
            if (ready[0].revents & (POLLIN | POLLHUP | POLLERR)) take_request();
            flush();
        }
        if (!ended_) end();
        if (::getppid() != setup_.helper) setup_.place.cgroups.remove_base(); // the helper, whose task it is, is gone
        return ended_->clean ? 0 : 1;
    }

  private:
    // Processes of ours report their end; orphans that came to us as subreaper go in silence.
    void reap() {
        for (;;) {
            int status = 0;
            rusage usage{};
            const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
            if (pid < 0 && errno == EINTR) continue;
            if (pid <= 0) return;
            const auto found = alive_.find(pid);
            if (found == alive_.end()) continue;
            ProcessExited exited;
            exited.pid = pid;
            exited.name = found->second;
            exited.status = ExitStatus::from_wait_status(status);
            exited.end_ns = SystemClock().monotonic_ns();
            exited.user_seconds = seconds(usage.ru_utime);
            exited.system_seconds = seconds(usage.ru_stime);
            exited.max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024; // getrusage(2): kilobytes
            alive_.erase(found);
            post(canonical_json(Json{{"event", "exited"}, {"exited", encode(exited)}}));
        }
    }

    void take_request() {
        auto packet = receive_packet(setup_.agent.get(), Deadline::in(Milliseconds(0)));
        if (!packet && packet.error().kind == ErrorKind::timed_out) return;
        if (!packet || !*packet) { // the agent is gone: so is the run
            over_ = true;
            return;
        }
        const Packet& p = **packet;
        if (!p.fault.empty()) return post(error_text(0, fail(ErrorKind::bad_input, "read", "a request", p.fault)));
        const auto request = decode_guardian_request(p.text, p.fds.size());
        if (!request) return post(error_text(request_id(p.text), request.error()));
        const auto answer = [&](const auto& result) {
            if (result)
                post(reply_text(request->id, encode(*result)));
            else
                post(error_text(request->id, result.error()));
        };
        if (const auto* order = std::get_if<SpawnOrder>(&request->verb)) return answer(spawn_process(*order, p.fds));
        if (const auto* signal = std::get_if<SignalProcess>(&request->verb)) {
            const auto sent = signal_process(*signal);
            return post(sent ? reply_text(request->id, Json::object()) : error_text(request->id, sent.error()));
        }
        end();
        post(reply_text(request->id, encode(*ended_)));
        over_ = true;
        flush_until(Deadline::in(Milliseconds(2'000)));
    }

    Result<Spawned> spawn_process(const SpawnOrder& order, const std::vector<UniqueFd>& fds) {
        if (spawned_ >= most_spawned)
            return fail(ErrorKind::conflict, "start", order.argv[0],
                        "this run has started " + std::to_string(most_spawned) + " already");
        const RunCgroups& cgroups = setup_.place.cgroups;
        PERFRIG_TRY(const ProcessCgroup cgroup,
                    cgroups.make_process(setup_.run, order.name, order.cpus, order.memory_nodes));
        SpawnRequest request;
        request.argv = order.argv;
        request.environment = order.environment;
        std::erase_if(request.environment, [](const auto& entry) { return entry.first == run_marker; });
        request.environment.emplace_back(run_marker, setup_.directory);
        request.directory = order.directory.starts_with('/') ? order.directory
                            : order.directory.empty()        ? setup_.directory
                                                             : setup_.directory + "/" + order.directory;
        const auto fd = [&](int index) { return index < 0 ? -1 : fds[static_cast<std::size_t>(index)].get(); };
        request.stdin_fd = fd(order.stdin_fd);
        request.stdout_fd = fd(order.stdout_fd);
        request.stderr_fd = fd(order.stderr_fd);
        for (const auto& procs : cgroup.procs) request.cgroup_procs_fds.push_back(procs.get());
        if (!order.cpus.empty()) request.cpus = order.cpus;
        if (!order.memory_nodes.empty() && cgroup.cpuset == CgroupCpuset::none)
            request.memory_nodes = order.memory_nodes;
        request.speculation = order.speculation;
        request.user = setup_.user;
        request.no_new_privileges = true;
        const auto by_cgroup = cgroups.process_limit(setup_.run);
        if (setup_.most_processes > 0 && !by_cgroup) request.most_processes_of_user = setup_.most_processes;
        request.die_with_parent = true; // one thread, here and for good
        PERFRIG_TRY(const SpawnedProcess process, spawn(request));
        alive_.emplace(process.pid, order.name);
        ++spawned_;
        // A zombie keeps its stat until we reap it, so this is that process. What can't be noted still runs: it is in
        // the cgroup and below us.
        if (const auto stat = read_process_stat(setup_.place.tree, process.pid))
            if (const auto noted = setup_.place.work.note_process(setup_.run, process.pid, stat->start_ticks); !noted)
                log::warning(noted.error().text());
        Spawned spawned{process.pid,    process.start_ns,      std::string(to_string(cgroup.cpuset)), cgroup.cpuset_why,
                        cgroup.folders, by_cgroup.value_or(0), by_cgroup ? "cgroup" : "none"};
        if (const auto limit = own_process_limit(process.pid); limit && request.most_processes_of_user) {
            spawned.most_processes = *limit;
            spawned.processes_by = "rlimit";
        }
        return spawned;
    }

    // "Max processes             4096                 4096                 processes": proc(5).
    std::optional<std::int64_t> own_process_limit(pid_t pid) const {
        constexpr std::string_view name = "Max processes";
        const auto text = setup_.place.tree.read("/proc/" + std::to_string(pid) + "/limits");
        const auto line = text ? text->find(name) : std::string::npos;
        if (line == std::string::npos) return std::nullopt;
        const auto digits = text->find_first_not_of(' ', line + name.size());
        std::int64_t most = 0;
        if (digits == std::string::npos ||
            std::from_chars(text->data() + digits, text->data() + text->size(), most).ec != std::errc())
            return std::nullopt; // it has ended, or "unlimited"
        return most;
    }

    Result<void> signal_process(const SignalProcess& order) {
        reap();
        // Unreaped, so neither its number nor its process group's can be another's.
        if (!alive_.contains(order.pid))
            return fail(ErrorKind::not_found, "signal process", std::to_string(order.pid),
                        "it is none of this run's, or has ended");
        if (::kill(-order.pid, order.signal) != 0)
            return fail_errno(errno, "signal process", std::to_string(order.pid));
        return {};
    }

    void end() {
        const std::int64_t refused = setup_.place.cgroups.refused_processes(setup_.run); // goes with the cgroup
        ended_ = end_everything(setup_.place, setup_.run, {}, [&] { reap(); });
        ended_->refused_processes = refused;
        reap();
    }

    void post(std::string text) {
        outbox_.push_back(std::move(text));
        if (outbox_.size() > most_unread_packets) over_ = true;
    }

    void flush() { flush_until(Deadline::in(Milliseconds(0))); }

    void flush_until(Deadline deadline) {
        while (!outbox_.empty()) {
            const auto sent = send_packet(setup_.agent.get(), outbox_.front(), {}, deadline);
            if (!sent && sent.error().kind == ErrorKind::timed_out) return;
            outbox_.pop_front(); // sent, or the agent is gone: the next receive says so
        }
    }

    GuardianSetup setup_;
    UniqueFd signals_;
    std::map<pid_t, std::string> alive_; // started by us and not reaped
    std::size_t spawned_ = 0;
    std::deque<std::string> outbox_;
    std::optional<RunEnded> ended_;
    bool over_ = false;
};

} // namespace

int run_guardian(GuardianSetup setup) {
    std::vector<int> keep = setup.place.work.descriptors();
    keep.push_back(setup.agent.get());
    auto signals = set_up_process(setup.place.tree, "perfrig-guard", keep);
    if (!signals) {
        log::error(signals.error().text());
        return 1;
    }
    return Guardian(std::move(setup), *std::move(signals)).run();
}

} // namespace perfrig
