#include "common/process/child_steps.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfrig::spawning {

namespace {

constexpr int report_slot = 3; // where the pipe waits for exec; everything above is closed
constexpr int mode_bind = 2;   // MPOL_BIND of linux/mempolicy.h

[[noreturn]] void give_up(int report_fd, Step step, int error, int detail = 0) {
    const Report report{step, error, detail};
    [[maybe_unused]] const ssize_t n = ::write(report_fd, &report, sizeof report);
    ::_exit(127);
}

void pin(const Plan& plan, int report_fd) {
    if (::syscall(SYS_sched_setaffinity, 0, sizeof plan.cpus.words, plan.cpus.words) != 0)
        give_up(report_fd, Step::affinity, errno);
    // The kernel silently drops CPUs that are offline or outside our cpuset: read back.
    std::uint64_t got[mask_words] = {};
    if (::syscall(SYS_sched_getaffinity, 0, sizeof got, got) < 0) give_up(report_fd, Step::affinity, errno);
    for (std::size_t i = 0; i < mask_words; ++i)
        if (got[i] != plan.cpus.words[i]) give_up(report_fd, Step::affinity_narrower, 0);
}

void control_speculation(SpeculationKind kind, const std::optional<SpeculationWish>& wish, Step step, int report_fd) {
    if (!wish) return;
    const int error = set_speculation(kind, *wish);
    const int state = get_speculation(kind);
    // The parent finds the words.
    if (speculation_result(*wish, error, state) != SpeculationResult::applied) give_up(report_fd, step, error, state);
}

// Raw system calls: glibc's wrappers would signal the other threads of the forking program, which are not here.
void become(const User& user, int report_fd) {
    if (user.uid == 0) give_up(report_fd, Step::user, EPERM);
    if (::syscall(SYS_geteuid) != 0 && ::syscall(SYS_geteuid) == user.uid) return; // already, and can't be another
    if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0 ||
        ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0 ||
        ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0)
        give_up(report_fd, Step::user, errno);
    if (::syscall(SYS_setresuid, -1, 0, -1) == 0) give_up(report_fd, Step::user, EPERM);
}

// Behind become(): a change of user clears the death signal, and root would not be held by the limit.
void limit(const SpawnRequest& request, pid_t parent, int report_fd) {
    if (request.no_new_privileges && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        give_up(report_fd, Step::privileges, errno);
    if (request.most_processes_of_user) {
        rlimit processes{};
        ::getrlimit(RLIMIT_NPROC, &processes);
        const auto most = static_cast<rlim_t>(*request.most_processes_of_user);
        processes.rlim_max = processes.rlim_max < most ? processes.rlim_max : most; // RLIM_INFINITY is the greatest
        processes.rlim_cur = processes.rlim_max;
        if (::setrlimit(RLIMIT_NPROC, &processes) != 0) give_up(report_fd, Step::processes, errno);
    }
    if (!request.die_with_parent) return;
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) give_up(report_fd, Step::parent, errno);
    if (::getppid() != parent) give_up(report_fd, Step::parent, ESRCH); // it ended before the kernel was told
}

void reset_signals() {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr); // KILL, STOP refuse: fine
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_from(int first) {
#ifdef SYS_close_range
    if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
    // Before 5.9. Descriptors above a lowered limit are missed only if the program lowered it itself: ours don't.
    rlimit limit{};
    const rlim_t most = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1048576 ? limit.rlim_cur : 1048576;
    for (int fd = first; static_cast<rlim_t>(fd) < most; ++fd) ::close(fd);
}

// 0, 1, 2 are what was asked for, 3 the report pipe, nothing else is open. Returns the pipe.
int arrange_descriptors(const SpawnRequest& request, int report_fd) {
    const int null = ::open("/dev/null", O_RDWR);
    if (null < 0) give_up(report_fd, Step::descriptors, errno);
    const int wanted[3] = {request.stdin_fd, request.stdout_fd, request.stderr_fd};
    int safe[3]; // above the three, so that dup2 below overwrites no source
    for (int i = 0; i < 3; ++i) {
        safe[i] = ::fcntl(wanted[i] >= 0 ? wanted[i] : null, F_DUPFD, 10);
        if (safe[i] < 0) give_up(report_fd, Step::descriptors, errno);
    }
    const int safe_report = ::fcntl(report_fd, F_DUPFD, 10);
    if (safe_report < 0) give_up(report_fd, Step::descriptors, errno);
    for (int i = 0; i < 3; ++i)
        if (::dup2(safe[i], i) < 0) give_up(safe_report, Step::descriptors, errno);
    if (::dup3(safe_report, report_slot, O_CLOEXEC) < 0) give_up(safe_report, Step::descriptors, errno);
    close_from(report_slot + 1);
    return report_slot;
}

} // namespace

Mask::Mask(const CpuList& list) {
    for (const int id : list)
        if (id >= 0 && id < static_cast<int>(mask_words * 64)) words[id / 64] |= std::uint64_t{1} << (id % 64);
}

void run_child(const Plan& plan, int report_fd) {
    const SpawnRequest& request = plan.request;
    if ((request.new_session ? ::setsid() : ::setpgid(0, 0)) < 0) give_up(report_fd, Step::session, errno);
    for (std::size_t i = 0; i < request.cgroup_procs_fds.size(); ++i)
        if (::write(request.cgroup_procs_fds[i], "0", 1) != 1) // "0": the writer itself, v1 and v2 alike
            give_up(report_fd, Step::cgroup, errno, static_cast<int>(i));
    if (request.cpus) pin(plan, report_fd);
    if (request.memory_nodes && ::syscall(SYS_set_mempolicy, mode_bind, plan.memory_nodes.words,
                                          1024 + 1) != 0) // 1,024 nodes are the most of x86-64
        give_up(report_fd, Step::memory_nodes, errno);
    control_speculation(SpeculationKind::indirect_branch, request.speculation.indirect_branch, Step::indirect_branch,
                        report_fd);
    control_speculation(SpeculationKind::store_bypass, request.speculation.store_bypass, Step::store_bypass, report_fd);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core); // lowering can't fail
    report_fd = arrange_descriptors(request, report_fd);
    if (request.user) become(*request.user, report_fd);
    limit(request, plan.parent, report_fd);
    if (!request.directory.empty() && ::chdir(request.directory.c_str()) != 0)
        give_up(report_fd, Step::directory, errno);
    reset_signals();
    int error = ENOENT;
    for (const char* candidate : plan.candidate_texts) {
        ::execve(candidate, plan.argv.data(), plan.envp.data());
        if (errno == ENOENT || errno == ENOTDIR) continue;
        error = errno;
        if (errno != EACCES) break;
    }
    give_up(report_fd, Step::program, error);
}

} // namespace perfrig::spawning
