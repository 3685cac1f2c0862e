#include "agent/helper/helper_process.hpp"

#include "agent/helper/channel.hpp"
#include "agent/helper/counts_reader.hpp"
#include "agent/helper/ending.hpp"
#include "agent/helper/guardian.hpp"
#include "agent/helper/process_setup.hpp"
#include "agent/helper/requests.hpp"
#include "agent/helper/traces.hpp"
#include "common/base/log.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr Milliseconds time_for_guardians{20'000}; // to end their runs after the agent is gone
constexpr Milliseconds time_to_remove{20'000};     // one directory
constexpr Milliseconds time_to_send{5'000};
constexpr Milliseconds time_to_die{5'000}; // a killed guardian
constexpr std::size_t most_begun = 16;     // runs that were begun and not ended: each keeps what there was before it

// A memory file holds what it holds: reading it can't block, as a pipe or a foreign file system could.
Result<std::string> read_memory_file(int fd) {
    const auto refuse = [](std::string why) {
        return fail(ErrorKind::bad_input, "take a file's content", "", std::move(why));
    };
    if (::fcntl(fd, F_GET_SEALS) < 0) return refuse("it came in something that is no memory file");
    std::string content(most_file_bytes + 1, '\0');
    std::size_t size = 0;
    while (size < content.size()) {
        const ssize_t n = ::pread(fd, content.data() + size, content.size() - size, static_cast<off_t>(size));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "take a file's content", "");
        if (n == 0) break;
        size += static_cast<std::size_t>(n);
    }
    if (size > most_file_bytes) return refuse("it has more than " + std::to_string(most_file_bytes) + " bytes");
    content.resize(size);
    return content;
}

class Helper {
  public:
    Helper(HelperSetup setup, UniqueFd signals)
        : config_(setup.config), place_(setup.place), cgroups_(place_.cgroups), work_(place_.work),
          workload_(setup.workload), privileged_(::geteuid() == 0), agent_(std::move(setup.agent)),
          warden_(std::move(setup.warden)), signals_(std::move(signals)) {}

    int run() {
        while (!over_) {
            pollfd ready[3] = {{agent_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {warden_.get(), POLLIN, 0}};
            if (::poll(ready, 3, -1) < 0 && errno != EINTR) break;
            over_ = ready[2].revents != 0; // without its warden nothing would end the runs if we were killed
            if (ready[1].revents) {
                drain_signals(signals_.get());
                reap();
                end_lost();
            }
            if (ready[0].revents) take_request();
        }
        return shut_down() ? 0 : 1;
    }

  private:
    void reap() {
        for (;;) {
            int status = 0;
            const pid_t pid = ::waitpid(-1, &status, WNOHANG);
            if (pid < 0 && errno == EINTR) continue;
            if (pid <= 0) return;
            if (pid == counts_reader_) counts_reader_ = -1;
            const auto found =
                std::find_if(guardians_.begin(), guardians_.end(), [&](const auto& g) { return g.second == pid; });
            if (found == guardians_.end()) continue; // an orphan of a lost guardian
            const ExitStatus exit = ExitStatus::from_wait_status(status);
            if (!exit.good()) lost_.push_back({found->first, "its guardian was ended by " + exit.text()});
            guardians_.erase(found);
        }
    }

    std::vector<pid_t> own_children() const { // which are none of a run's
        std::vector<pid_t> pids;
        for (const auto& [run, pid] : guardians_) pids.push_back(pid);
        if (counts_reader_ > 0) pids.push_back(counts_reader_);
        return pids;
    }

    RunEnded end(const RunName& run) {
        return end_everything(place_, run, own_children(), [&] { reap(); });
    }

    void end_lost() {
        while (!lost_.empty()) {
            RunLost lost = std::move(lost_.back());
            lost_.pop_back();
            const RunEnded ended = end(lost.run);
            if (!ended.clean) lost.why += "; " + ended.why;
            log::warning("ended " + lost.run.text() + ": " + lost.why);
            send(canonical_json(Json{{"notice", "run_lost"}, {"lost", encode(lost)}}), {});
        }
    }

    void send(std::string_view text, const std::vector<int>& fds) {
        // An agent that doesn't read its answers breaks the contract: go on as if it were gone.
        if (!send_packet(agent_.get(), text, fds, Deadline::in(time_to_send))) over_ = true;
    }

    void take_request() {
        auto packet = receive_packet(agent_.get(), Deadline::in(Milliseconds(0)));
        if (!packet && packet.error().kind == ErrorKind::timed_out) return;
        if (!packet || !*packet) {
            over_ = true;
            return;
        }
        const Packet& p = **packet;
        if (!p.fault.empty()) return send(error_text(0, fail(ErrorKind::bad_input, "read", "a request", p.fault)), {});
        const auto request = decode_helper_request(p.text, p.fds.size());
        if (!request) return send(error_text(request_id(p.text), request.error()), {});
        reap(); // so that what is said about runs is true now
        end_lost();
        std::vector<UniqueFd> fds;
        const auto result = std::visit([&](const auto& verb) { return serve(verb, p, fds); }, request->verb);
        if (!result) return send(error_text(request->id, result.error()), {});
        std::vector<int> numbers;
        for (const auto& fd : fds) numbers.push_back(fd.get());
        send(reply_text(request->id, *result), numbers);
    }

    Result<Message> serve(const BeginRun& verb, const Packet&, std::vector<UniqueFd>& fds) {
        const RunName& run = verb.run;
        if (guardians_.contains(run))
            return fail(ErrorKind::conflict, "begin", run.text(), "it is open already", "end it first");
        if (before_.size() >= most_begun)
            return fail(ErrorKind::conflict, "begin", run.text(),
                        std::to_string(before_.size()) + " runs were begun and not ended", "end one of them first");
        PERFRIG_CHECK(
            cgroups_.end_run(run, Deadline::in(place_.time_to_end), [&] { reap(); })); // leftovers of the same name
        PERFRIG_TRY(const std::string directory, work_.make_run_directory(run));
        const auto give_up = [&](Error error) {
            static_cast<void>(cgroups_.end_run(run, Deadline::in(place_.time_to_end), [&] { reap(); }));
            static_cast<void>(work_.remove_run_directory(run, Deadline::in(time_to_remove)));
            work_.note_end(run);
            return error;
        };
        if (const auto made = cgroups_.make_run(run, verb.most_processes); !made) return give_up(made.error());
        if (const auto noted = work_.note_begin(run, this_boot(place_.tree)); !noted) return give_up(noted.error());
        TraceLook before = look_for_traces(place_.tree, workload_.uid);
        auto channel = make_channel();
        if (!channel) return give_up(channel.error());
        const pid_t self = ::getpid();
        const pid_t guardian = ::fork();
        if (guardian < 0) return give_up(fail_errno(errno, "start the guardian of", run.text()));
        if (guardian == 0)
            ::_exit(run_guardian({run, directory, privileged_ ? std::optional(workload_) : std::nullopt, place_,
                                  verb.most_processes, self, std::move(channel->second)}));
        guardians_.emplace(run, guardian);
        before_.insert_or_assign(run, std::move(before));
        fds.push_back(std::move(channel->first)); // closed here once it is sent: the agent's copy is the life line
        return Message{{"directory", directory}};
    }

    Result<Message> serve(const EndRun& verb, const Packet&, std::vector<UniqueFd>&) {
        std::set<RunName> runs;
        const auto add = [&](const RunName& run) {
            if (run.run_id == verb.run_id) runs.insert(run);
        };
        for (const auto& [run, pid] : guardians_) add(run);
        for (const auto& run : cgroups_.runs()) add(run);
        for (const auto& noted : work_.noted()) add(noted.run);
        RunEnded all;
        for (const auto& run : runs) {
            const bool gone = end_guardian(run);
            const RunEnded ended = end(run);
            all.killed += ended.killed;
            all.clean = all.clean && ended.clean && gone;
            all.why += (gone ? "" : "its guardian was killed and doesn't end; ") + ended.why;
        }
        // Not an error of the end: a folder disturbs no measurement as a process would.
        if (verb.remove_directory)
            if (const auto removed = remove_directories([&](const RunName& run) { return run.run_id == verb.run_id; });
                !removed)
                all.traces.push_back(removed.error().text());
        for (auto one = before_.begin(); one != before_.end();)
            one = one->first.run_id == verb.run_id ? take_traces(one, all.traces) : std::next(one);
        return encode(all);
    }

    // Removed only where the user is the workloads' alone: nobody else's user, and no process of his was there before
    // the run.
    std::map<RunName, TraceLook>::iterator take_traces(std::map<RunName, TraceLook>::iterator one,
                                                       std::vector<std::string>& traces) {
        constexpr uid_t nobody = 65534; // what many programs run as
        const bool own = privileged_ && workload_.uid != nobody && !one->second.user_has_others;
        if (guardians_.empty()) {
            const auto found = clear_traces(place_.tree, one->second, workload_, own, Deadline::in(time_to_remove));
            traces.insert(traces.end(), found.begin(), found.end());
        }
        return before_.erase(one);
    }

    // So that it starts nothing more while the run is ended over its head. Its processes become our children. False: it
    // is stuck in the kernel; its run stays open, and is ended as a lost one when it gets out.
    bool end_guardian(const RunName& run) {
        const auto found = guardians_.find(run);
        if (found == guardians_.end()) return true;
        ::kill(found->second, SIGKILL); // our child and unreaped
        for (const auto deadline = Deadline::in(time_to_die);;) {
            const pid_t got = ::waitpid(found->second, nullptr, WNOHANG);
            if (got == found->second || (got < 0 && errno == ECHILD)) break;
            if (deadline.passed()) return false;
            ::poll(nullptr, 0, 2);
        }
        guardians_.erase(found);
        return true;
    }

    template <class Wanted> Result<void> remove_directories(Wanted wanted) {
        for (const auto& run : work_.runs())
            if (wanted(run) && !guardians_.contains(run))
                PERFRIG_CHECK(work_.remove_run_directory(run, Deadline::in(time_to_remove)));
        return {};
    }

    Result<Message> serve(const Sweep& verb, const Packet&, std::vector<UniqueFd>&) {
        std::set<RunName> guarded; // of this agent, and well
        for (const auto& [run, pid] : guardians_) guarded.insert(run);
        PERFRIG_TRY(const SweepReport report, sweep_runs(place_, guarded, own_children(), [&] { reap(); }));
        // That no process is left is what a start depends on; a folder that can't be removed (too deep, too many files)
        // must not keep the agent from starting for ever.
        const auto deadline = Deadline::in(time_to_remove);
        for (const auto& run : verb.remove_directories ? work_.runs() : std::vector<RunName>())
            if (!guardians_.contains(run))
                if (const auto removed = work_.remove_run_directory(run, deadline); !removed)
                    log::warning(removed.error().text());
        return encode(report);
    }

    Result<Message> serve(const WriteFile& verb, const Packet& packet, std::vector<UniqueFd>&) {
        PERFRIG_TRY(const std::string content, read_memory_file(packet.fds.at(0).get()));
        PERFRIG_CHECK(work_.write_file(verb.run, verb.path, verb.mode, content));
        return Message::object();
    }

    Result<Message> serve(const OpenFile& verb, const Packet&, std::vector<UniqueFd>& fds) {
        PERFRIG_TRY(UniqueFd file, work_.open_file(verb.run, verb.path));
        fds.push_back(std::move(file));
        return Message::object();
    }

    Result<Message> serve(const OpenCounts& verb, const Packet&, std::vector<UniqueFd>& fds) {
        if (counts_reader_ > 0) return fail(ErrorKind::conflict, "open", "thread counts", "they are open already");
        PERFRIG_TRY(CountsReader reader, start_counts_reader(place_.tree, config_.agent_user, verb.cpus));
        counts_reader_ = reader.pid;
        fds.push_back(std::move(reader.agent));
        return Message::object();
    }

    Result<Message> serve(const AskFacts&, const Packet&, std::vector<UniqueFd>&) {
        const CgroupPlan& plan = cgroups_.plan();
        return encode(HelperFacts{privileged_, workload_.name, workload_.uid, std::string(to_string(plan.kill)),
                                  std::string(to_string(plan.cpuset)), plan.why});
    }

    // The agent is gone: its guardians have seen the same and end their runs; whoever does not is helped.
    bool shut_down() {
        agent_.reset();
        if (counts_reader_ > 0) ::kill(counts_reader_, SIGKILL); // our child and unreaped; reaped with the others below
        const auto deadline = Deadline::in(time_for_guardians);
        for (reap(); (!guardians_.empty() || counts_reader_ > 0) && !deadline.passed(); reap()) {
            pollfd ready{signals_.get(), POLLIN, 0};
            ::poll(&ready, 1, 200);
            drain_signals(signals_.get());
        }
        bool clean = true;
        while (!guardians_.empty() || !lost_.empty()) {
            const RunName run = lost_.empty() ? guardians_.begin()->first : lost_.back().run;
            if (!lost_.empty()) lost_.pop_back();
            end_guardian(run);
            const RunEnded ended = end(run);
            if (!ended.clean) log::error("can't end " + run.text() + ": " + ended.why);
            clean = clean && ended.clean;
        }
        cgroups_.remove_base();
        return clean;
    }

    const HelperConfig& config_;
    const RunPlace place_;
    const RunCgroups& cgroups_;
    const WorkBase& work_;
    const User& workload_;
    const bool privileged_;
    UniqueFd agent_;
    UniqueFd warden_;
    UniqueFd signals_;
    pid_t counts_reader_ = -1;            // our child, unreaped
    std::map<RunName, pid_t> guardians_;  // our children, unreaped
    std::map<RunName, TraceLook> before_; // what there was when the run began
    std::vector<RunLost> lost_;           // whose guardians ended badly, to be ended by us
    bool over_ = false;
};

} // namespace

int run_helper(HelperSetup setup) {
    std::vector<int> keep = setup.place.work.descriptors();
    keep.insert(keep.end(), {setup.agent.get(), setup.warden.get()});
    auto signals = set_up_process(setup.place.tree, "perfrig-helper", keep);
    const auto word = signals ? reply_text(0, Json{{"helper", ::getpid()}}) : error_text(0, signals.error());
    if (!send_packet(setup.agent.get(), word, {}, Deadline::in(time_to_send)) || !signals) return 1;
    return Helper(std::move(setup), *std::move(signals)).run();
}

} // namespace perfrig
