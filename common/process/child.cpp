#include "common/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <utility>

namespace perfrig {

namespace {

constexpr int longest_step_ms = 20; // between two looks, where nothing wakes us

UniqueFd open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
    return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); // close-on-exec by definition; -1 before 5.3
#else
    static_cast<void>(pid);
    return UniqueFd();
#endif
}

} // namespace

Result<Child> Child::start(const SpawnRequest& request, bool use_pidfd) {
    PERFRIG_TRY(const SpawnedProcess process, spawn(request));
    return Child(process.pid, process.start_ns, use_pidfd ? open_pidfd(process.pid) : UniqueFd());
}

Child::Child(pid_t pid, std::int64_t start_ns, UniqueFd pidfd)
    : pid_(pid), start_ns_(start_ns), pidfd_(std::move(pidfd)) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), start_ns_(other.start_ns_), pidfd_(std::move(other.pidfd_)),
      reaped_(other.reaped_), status_(other.status_) {}

Child& Child::operator=(Child&& other) noexcept {
    if (this == &other) return *this;
    drop();
    pid_ = std::exchange(other.pid_, -1);
    start_ns_ = other.start_ns_;
    pidfd_ = std::move(other.pidfd_);
    reaped_ = other.reaped_;
    status_ = other.status_;
    return *this;
}

Child::~Child() { drop(); }

void Child::drop() {
    if (pid_ > 0 && !reaped_) kill();
}

bool Child::ended() const {
    if (reaped_ || pid_ <= 0) return true;
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

bool Child::reap() {
    if (reaped_ || pid_ <= 0) return true;
    int status = 0;
    pid_t got = 0;
    do got = ::waitpid(pid_, &status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    reaped_ = true;
    if (got == pid_) status_ = ExitStatus::from_wait_status(status); // else somebody else reaped it: a bug there
    return true;
}

Result<ExitStatus> Child::wait(Deadline deadline) {
    for (int step_ms = 1; !reap(); step_ms = std::min(step_ms * 2, longest_step_ms)) {
        if (deadline.passed())
            return fail(ErrorKind::timed_out, "wait for the end of process", std::to_string(pid_),
                        "it is still running");
        const int left_ms = static_cast<int>(std::min<std::int64_t>(deadline.left().count() + 1, 60'000));
        pollfd end{pidfd_.get(), POLLIN, 0};
        if (pidfd_)
            ::poll(&end, 1, left_ms);
        else
            ::poll(nullptr, 0, std::min(step_ms, left_ms));
    }
    return status_;
}

Result<void> Child::signal_group(int signal) {
    if (reaped_ || pid_ <= 0) return fail(ErrorKind::not_found, "signal process", std::to_string(pid_), "it has ended");
    if (::kill(-pid_, signal) != 0) return fail_errno(errno, "signal the process group", std::to_string(pid_));
    return {};
}

ExitStatus Child::stop(Milliseconds grace) {
    if (signal_group(SIGTERM))
        if (const auto status = wait(Deadline::in(grace))) return *status;
    return kill();
}

ExitStatus Child::kill() {
    if (pid_ <= 0 || reaped_) return status_;
    ::kill(-pid_, SIGKILL); // the unreaped leader keeps the group's number from being reused
    int status = 0;
    pid_t got = 0;
    do got = ::waitpid(pid_, &status, 0);
    while (got < 0 && errno == EINTR);
    reaped_ = true;
    if (got == pid_) status_ = ExitStatus::from_wait_status(status);
    return status_;
}

pid_t Child::release() { return std::exchange(pid_, -1); }

} // namespace perfrig
