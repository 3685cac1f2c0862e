// The agent's side of the helper and of a run's guardian. Calls block, each with a deadline.
//
//   HelperClient (one per agent; calls may come from any thread, one is served at a time)
//     begin_run -> RunGuard (one per run; used by one thread)
//       spawn, signal, next_event, end
//
// Whatever happens to the agent, the guardian ends its run: the socket inside RunGuard is the life line. Dropping a
// RunGuard without end() ends the run too. An `unavailable` error from HelperClient means that the helper is gone: the
// agent can't keep its promises any more and must shut down.
#pragma once

#include "agent/helper/messages.hpp"
#include "common/base/clock.hpp"
#include "common/base/unique_fd.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace perfrig {

class HelperClient;

class RunGuard {
  public:
    RunGuard(RunGuard&&) noexcept = default;
    RunGuard& operator=(RunGuard&&) noexcept = default;

    const RunName& run() const { return run_; }
    const std::string& directory() const { return directory_; } // the run's directory, absolute

    // Starts a process of the run. The three descriptors of the order are borrowed; close your copies of pipe ends
    // afterwards. Error kinds as spawn() of common/process, and timed_out, unavailable (the guardian is gone).
    Result<Spawned> spawn(const SpawnOrder& order, Deadline deadline);
    // To the process group of a process that spawn() started; not_found once it has exited.
    Result<void> signal(pid_t pid, int signal, Deadline deadline);
    // The next exit of a process that spawn() started; timed_out when none came. `unavailable`: the guardian is gone
    // and the helper ends what it guarded.
    Result<ProcessExited> next_event(Deadline deadline);
    int event_fd() const { return socket_.get(); } // readable: next_event has something; poll has_event() first
    bool has_event() const { return !events_.empty(); }
    bool lost() const { return lost_; } // the guardian was found to be gone
    // Ends everything the run started and removes its cgroup; the run directory stays (HelperClient::end_run removes
    // it). Exits of processes still running are returned by next_event afterwards. The second call does nothing.
    Result<RunEnded> end(Deadline deadline);

  private:
    friend class HelperClient;
    RunGuard(UniqueFd socket, RunName run, std::string directory)
        : socket_(std::move(socket)), run_(run), directory_(std::move(directory)) {}
    Result<Message> ask(Message request, const std::vector<int>& fds, Deadline deadline);
    Result<void> take_packet(const std::string& text, std::int64_t id, std::optional<Message>& reply);
    Error guardian_gone();
    UniqueFd socket_;
    RunName run_;
    std::string directory_;
    std::deque<ProcessExited> events_;
    std::optional<RunEnded> ended_;
    std::int64_t last_id_ = 0;
    bool lost_ = false;
};

class HelperClient {
  public:
    // `child`: the process to wait for at the end (the warden), -1 for none; `helper`: that which answers.
    HelperClient(UniqueFd socket, pid_t child, pid_t helper);
    HelperClient(HelperClient&&) noexcept;
    HelperClient& operator=(HelperClient&&) noexcept;
    ~HelperClient(); // closes: the helper ends all runs of this agent and exits

    // Makes the run's directory and cgroup and starts its guardian. conflict: it is already open, or its directory
    // exists. `most_processes`: what the run may have at a time, threads counted; 0: no limit.
    Result<RunGuard> begin_run(RunName run, Deadline deadline, std::int64_t most_processes = 0);
    // Ends everything of all attempts of this run, guardian or not; idempotent. With `remove_directory` its directories
    // go too.
    Result<RunEnded> end_run(std::int64_t run_id, bool remove_directory, Deadline deadline);
    // Ends all that earlier agents of the same state directory left. At agent start, before the first begin_run.
    Result<SweepReport> sweep(bool remove_directories, Deadline deadline);
    // Writes a file (at most 1 MiB) into the run's directory as the workload's user, with its folders, whole or not at
    // all. `path` is relative, without "..", and no link is followed. Mode: the lower nine bits.
    Result<void> write_file(RunName run, const std::string& path, int mode, std::string_view content,
                            Deadline deadline);
    // A regular file of the run's directory, opened for reading as the workload's user; no link is followed.
    Result<UniqueFd> open_file(RunName run, const std::string& path, Deadline deadline);
    // The socket for a ThreadCountsClient, read for by a process with CAP_NET_ADMIN alone, on these CPUs. forbidden,
    // not_found: this machine doesn't have it; conflict: it is open already.
    Result<UniqueFd> open_counts(const CpuList& cpus, Deadline deadline);
    // What this machine offers the helper: cgroups, users.
    Result<HelperFacts> facts(Deadline deadline);
    // Runs that the helper had to end because their guardian was lost, since the last call.
    std::vector<RunLost> take_lost();
    int event_fd() const; // readable: a notice came, or the helper is gone (check_alive tells)
    Result<void> check_alive();
    pid_t helper_pid() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace perfrig
