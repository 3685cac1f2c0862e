#include "agent/helper/start.hpp"

#include "agent/helper/channel.hpp"
#include "agent/helper/requests.hpp"
#include "agent/helper/warden.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr Milliseconds time_to_start{20'000};

Result<User> unprivileged(const FileTree& tree, const std::string& name, const char* what) {
    const std::string tried = std::string("start as root without ") + what;
    if (name.empty())
        return fail(ErrorKind::forbidden, tried, "", "workloads and the agent never run as root",
                    "configure agent_user and workload_user, both unprivileged");
    PERFRIG_TRY(User user, find_user(tree, name));
    if (user.uid == 0)
        return fail(ErrorKind::forbidden, "run as the user", name, "it is root",
                    "configure agent_user and workload_user, both unprivileged");
    return user;
}

// Whoever this process is, as workloads will be: known by name or not.
User own_user(const FileTree& tree) {
    const auto uid = ::geteuid();
    if (auto user = find_user(tree, std::to_string(uid))) return *std::move(user);
    return {"uid " + std::to_string(uid), uid, ::getegid(), {}, "/"};
}

Result<void> check(const HelperConfig& config) {
    for (const auto* path : {&config.state_directory, &config.work_base})
        if (!path->starts_with('/'))
            return fail(ErrorKind::bad_input, "start the helper with the path", *path, "it is not absolute",
                        "give one that begins with /");
    // A fork copies one thread alone; locks that the others held would stay held for ever in the helper.
    const auto threads = config.tree.list("/proc/self/task");
    if (threads && threads->size() > 1)
        return fail(ErrorKind::internal, "start the helper", "", "this process has threads already",
                    "start it first in main");
    return {};
}

} // namespace

Result<HelperClient> fork_helper(const HelperConfig& config) {
    PERFRIG_CHECK(check(config));
    User workload = own_user(config.tree);
    if (::geteuid() == 0) {
        PERFRIG_TRY(workload, unprivileged(config.tree, config.workload_user, "a user for workloads"));
    }
    PERFRIG_TRY(auto channel, make_channel());
    std::fflush(nullptr); // what is buffered would be written by both
    const pid_t warden = ::fork();
    if (warden < 0) return fail_errno(errno, "start the helper", "");
    if (warden == 0) {
        channel.first.reset();
        ::_exit(run_warden(config, workload, std::move(channel.second)));
    }
    channel.second.reset();
    const auto give_up = [&](Error error) {
        channel.first.reset(); // it ends when it sees this
        while (::waitpid(warden, nullptr, 0) < 0 && errno == EINTR) {
        }
        return error;
    };
    const auto packet = receive_packet(channel.first.get(), Deadline::in(time_to_start));
    if (!packet) return give_up(packet.error());
    if (!*packet) return give_up(fail(ErrorKind::internal, "start the helper", "", "it ended at once"));
    const auto said = parse_json((*packet)->text, "the helper's first word");
    if (!said) return give_up(said.error());
    if (said->contains("error")) return give_up(decode_error((*said)["error"]));
    const Json word = said->value("ok", Json());
    JsonReader in(word, "the helper's first word");
    const auto helper = static_cast<pid_t>(in.integer("helper"));
    if (const auto read = in.finish(); !read) return give_up(read.error());
    return HelperClient(std::move(channel.first), warden, helper);
}

Result<HelperClient> start_helper(const HelperConfig& config) {
    if (::geteuid() != 0) return fork_helper(config);
    PERFRIG_TRY(const User agent, unprivileged(config.tree, config.agent_user, "a user for the agent"));
    PERFRIG_TRY(HelperClient client, fork_helper(config));
    PERFRIG_CHECK(drop_privileges(agent));
    return client;
}

} // namespace perfrig
