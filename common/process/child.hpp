// A child process with one owner. Waiting uses a pidfd where the kernel has them (5.3), else waitid(2) in short steps.
// Signals go to a process that is still ours and unreaped, so a reused pid can't be hit. The destructor kills the whole
// process group and reaps: nothing outlives its owner unless release() says so.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/unique_fd.hpp"
#include "common/process/exit_status.hpp"
#include "common/process/spawn.hpp"

namespace perfrig {

class Child {
  public:
    // `use_pidfd` false: as on a kernel before 5.3.
    static Result<Child> start(const SpawnRequest& request, bool use_pidfd = true);
    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();

    pid_t pid() const { return pid_; }
    std::int64_t start_ns() const { return start_ns_; }
    bool ended() const;                        // without reaping: its process group can still be signalled
    int pidfd() const { return pidfd_.get(); } // readable when it has ended; -1: the kernel has none
    // Waits until it ends; timed_out when the deadline passes first (it goes on running).
    Result<ExitStatus> wait(Deadline deadline);
    // To the process group of the child (which it leads); not_found once it was reaped.
    Result<void> signal_group(int signal);
    // SIGTERM, `grace` for it to end, then SIGKILL to the group; always reaps.
    ExitStatus stop(Milliseconds grace);
    ExitStatus kill(); // SIGKILL to the group, and reap
    pid_t release();   // gives up ownership without ending it

  private:
    Child(pid_t pid, std::int64_t start_ns, UniqueFd pidfd);
    bool reap();     // without waiting; true when it has ended
    void drop();     // what the destructor does
    pid_t pid_ = -1; // -1: none, or released
    std::int64_t start_ns_ = 0;
    UniqueFd pidfd_; // empty: the kernel has none
    bool reaped_ = false;
    ExitStatus status_;
};

} // namespace perfrig
