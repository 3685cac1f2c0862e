#include "agent/helper/counts_reader.hpp"

#include "agent/helper/channel.hpp"
#include "agent/helper/process_setup.hpp"
#include "common/process/affinity.hpp"
#include "common/process/thread_counts_channel.hpp"
#include "common/process/users.hpp"

#include <cerrno>
#include <grp.h>
#include <linux/capability.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfrig {

namespace {

// From root to a user with CAP_NET_ADMIN alone, for good. Not dumpable afterwards, and more capable than the agent: so
// the agent can't trace it, although they share their user.
bool keep_net_admin_alone(const User& user) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    data[0].effective = data[0].permitted = 1U << CAP_NET_ADMIN;
    return ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && ::setgroups(0, nullptr) == 0 &&
           ::setresgid(user.gid, user.gid, user.gid) == 0 && ::setresuid(user.uid, user.uid, user.uid) == 0 &&
           ::syscall(SYS_capset, &header, data) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

int be_the_reader(const FileTree& tree, const std::optional<User>& user, const CpuList& cpus, TaskStats stats,
                  const UniqueFd& socket) {
    const auto signals = set_up_process(tree, "perfrig-counts", {socket.get(), stats.fd()});
    if (!signals || (user && !keep_net_admin_alone(*user))) return 1;
    static_cast<void>(pin_this_thread(cpus)); // as the agent's own threads: where it can't be, it costs elsewhere
    serve_thread_counts(stats, socket.get());
    return 0;
}

} // namespace

Result<CountsReader> start_counts_reader(const FileTree& tree, const std::string& agent_user, const CpuList& cpus) {
    PERFRIG_TRY(TaskStats stats, TaskStats::open());
    std::optional<User> user;
    if (::geteuid() == 0) {
        PERFRIG_TRY(user, find_user(tree, agent_user));
        if (user->uid == 0) return fail(ErrorKind::forbidden, "read thread counts as", agent_user, "it is root");
    }
    PERFRIG_TRY(auto channel, make_channel());
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno(errno, "start the reader of thread counts", "");
    if (pid == 0) {
        channel.first.reset();
        ::_exit(be_the_reader(tree, user, cpus, std::move(stats), channel.second));
    }
    return CountsReader{pid, std::move(channel.first)};
}

} // namespace perfrig
