#include "agent/helper/process_setup.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig {

namespace {

std::vector<int> open_descriptors(const FileTree& tree) {
    std::vector<int> all;
    const auto names = tree.list("/proc/self/fd");
    if (names) {
        for (const auto& name : *names)
            if (const int fd = std::atoi(name.c_str()); fd > 2) all.push_back(fd);
    } else {
        for (int fd = 3; fd < 65536; ++fd) all.push_back(fd); // no /proc here: try the numbers
    }
    return all;
}

} // namespace

Result<UniqueFd> set_up_process(const FileTree& tree, const char* name, const std::vector<int>& keep) {
    ::setsid(); // fails only for a group leader, which a fresh child never is
    ::prctl(PR_SET_NAME, name, 0, 0, 0);
    ::umask(022);
    // Ignored first and never reset in between: a guardian is born while a signal to the whole group may be on its way.
    constexpr int deaf_to[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1,
                               SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU};
    for (const int signal : deaf_to) ::signal(signal, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return fail_errno(errno, "become a subreaper", name);
    for (const int fd : open_descriptors(tree))
        if (std::find(keep.begin(), keep.end(), fd) == keep.end()) ::close(fd);
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    if (::sigprocmask(SIG_SETMASK, &mask, nullptr) != 0) return fail_errno(errno, "block signals", name);
    UniqueFd signals(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals) return fail_errno(errno, "watch children", name);
    return signals;
}

void drain_signals(int signal_fd) {
    signalfd_siginfo info[8];
    while (::read(signal_fd, info, sizeof info) > 0) {
    }
}

} // namespace perfrig
