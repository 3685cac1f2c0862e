// How often threads were switched away from, many threads in one go: taskstats over generic netlink, 2 to 3 us a thread
// where /proc/PID/task/TID/status takes 4 to 8 (the kernel prints some sixty lines there for two numbers).
// Source: Documentation/accounting/taskstats.rst and fill_stats() in kernel/taskstats.c of Linux.
//
// Left to /proc on purpose: user and system time (taskstats counts whole ticks as the timer found the thread;
// /proc/.../stat corrects them by the precise run time).
//
// The kernel asks both who opened the socket and who sends for CAP_NET_ADMIN, so a descriptor passed to an unprivileged
// process is of no use to it: a small process with this one capability reads, and answers over a socket.
#pragma once

#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace perfrig {

// Plain bytes: it also goes over the reader's socket as it is.
struct ThreadCounts {
    std::int32_t tid = 0;
    std::uint32_t alive = 0; // 0: there is no such thread, the rest is 0
    std::uint64_t voluntary = 0, involuntary = 0;
    // As schedstat prints them. All 0 on kernels before 5.14 without delay accounting: not known, then.
    std::uint64_t cpu_ns = 0, run_queue_wait_ns = 0, timeslices = 0;
    std::uint64_t age_us = 0; // since the thread began: one that got younger is another one with the same number
    char comm[16] = {};       // zero-terminated
    std::string_view name() const { return comm; }
};

class TaskStats {
  public:
    // forbidden: without CAP_NET_ADMIN; not_found: a kernel without taskstats. Has read the calling thread once.
    static Result<TaskStats> open();
    // One answer a thread, in the same order; `out` is emptied first.
    Result<void> read(std::span<const pid_t> tids, std::vector<ThreadCounts>& out);
    int fd() const { return socket_.get(); }

  private:
    TaskStats(UniqueFd socket, std::uint16_t family) : socket_(std::move(socket)), family_(family) {}
    Result<void> send_requests(std::span<const pid_t> tids);
    Result<void> take_answers(std::span<ThreadCounts> out);
    UniqueFd socket_;
    std::uint16_t family_;
    std::vector<char> requests_, answers_;
};

// One datagram of the kernel: which request of the batch it answers, and what it says; pure. An error that names the
// thread as gone (ESRCH) is an answer, every other one fails.
struct TaskStatsAnswer {
    std::uint32_t index = 0;
    bool alive = false;
    ThreadCounts counts; // tid 0: the kernel doesn't repeat it in errors
};
Result<TaskStatsAnswer> parse_taskstats_answer(std::span<const char> datagram);

} // namespace perfrig
