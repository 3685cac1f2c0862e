// Kernels before 5.x: the system calls that came after 4.18 answer ENOSYS, by a seccomp filter on a child that plays
// the agent and on all that it starts.
#include "tests/unit/agent/helper/support.hpp"

#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

using namespace perfrig;
using namespace perfrig::test;

namespace {

constexpr unsigned pidfd_send_signal = 424, pidfd_open = 434, clone3 = 435, close_range = 436, openat2 = 437; // x86-64

bool forget_new_system_calls() {
    std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (const unsigned number : {pidfd_send_signal, pidfd_open, clone3, close_range, openat2}) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
        program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 && ::syscall(pidfd_open, ::getpid(), 0) == -1 &&
           errno == ENOSYS;
}

// Exit codes tell which step failed.
int live_on_an_old_kernel(const HelperConfig& config, const std::string& mark) {
    if (!forget_new_system_calls()) return 1;
    const auto echoed = run_command({"sh", "-c", "echo hi; ls /proc/self/fd | wc -l"}, soon());
    if (!echoed || echoed->out != "hi\n4\n") return 2; // 0-2 and the folder that ls reads
    const auto late = run_command({"sleep", "1000"}, Deadline::in(Milliseconds(50)));
    if (late || late.error().kind != ErrorKind::timed_out) return 3;
    auto client = fork_helper(config);
    if (!client) return 4;
    auto guard = client->begin_run({1, 1}, soon());
    if (!guard || !guard->spawn(daemon_order(mark), soon())) return 5;
    if (!daemon_runs(mark)) return 6;
    if (!guard->next_event(soon())) return 7;
    const auto ended = guard->end(soon());
    if (!ended || !ended->clean) return 8;
    return marked(mark).empty() ? 0 : 9;
}

} // namespace

TEST_CASE("a run lives and ends on a kernel without pidfds and close_range") {
    for (const bool use_cgroups : {true, false}) {
        CAPTURE(use_cgroups);
        const Folder folder;
        const auto config = config_in(folder.path, use_cgroups);
        const std::string mark = new_mark();
        const pid_t agent = ::fork();
        REQUIRE(agent >= 0);
        if (agent == 0) ::_exit(live_on_an_old_kernel(config, mark));
        int status = -1;
        REQUIRE(::waitpid(agent, &status, 0) == agent);
        CHECK(ExitStatus::from_wait_status(status).text() == "0");
        CHECK(none_left(mark));
    }
}
