#include "common/process/spawn.hpp"

#include "common/base/clock.hpp"
#include "common/base/unique_fd.hpp"
#include "common/process/child_steps.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace perfrig {

namespace {

using spawning::Plan;
using spawning::Report;
using spawning::Step;

constexpr std::string_view fallback_path = "/usr/local/bin:/usr/bin:/bin";

std::string path_of(const Environment& environment) {
    for (const auto& [name, value] : environment)
        if (name == "PATH") return value;
    return std::string(fallback_path);
}

Result<void> check(const SpawnRequest& request) {
    const auto refuse = [&](std::string why, std::string remedy = {}) {
        return fail(ErrorKind::bad_input, "start", request.argv.empty() ? "a process" : request.argv[0], std::move(why),
                    std::move(remedy));
    };
    if (request.argv.empty() || request.argv[0].empty()) return refuse("no command was given");
    for (const auto& argument : request.argv)
        if (argument.find('\0') != std::string::npos) return refuse("an argument holds a zero byte");
    for (const auto& [name, value] : request.environment)
        if (name.empty() || name.find('=') != std::string::npos || (name + value).find('\0') != std::string::npos)
            return refuse("the environment variable '" + name + "' has no valid name or value");
    if (request.directory.find('\0') != std::string::npos) return refuse("the directory holds a zero byte");
    if (request.cpus && request.cpus->empty()) return refuse("its list of CPUs is empty");
    for (const auto* list : {&request.cpus, &request.memory_nodes})
        for (const int id : list->value_or(CpuList()))
            if (id < 0 || id >= CpuList::most_cpus) return refuse("CPU or node " + std::to_string(id) + " can't exist");
    if (request.user && request.user->uid == 0)
        return fail(ErrorKind::forbidden, "start", request.argv[0], "it would run as root",
                    "name an unprivileged user");
    return {};
}

// Why exec failed, as far as the caller can see it.
Error explain_program(const SpawnRequest& request, int error) {
    const std::string& name = request.argv[0];
    if (error != ENOENT) {
        const auto kind = error == EACCES || error == EPERM ? ErrorKind::forbidden : ErrorKind::unavailable;
        return fail(kind, "start", name, std::strerror(error),
                    error == ENOEXEC  ? "it is neither a program for this CPU nor a script with a #! line"
                    : error == E2BIG  ? "shorten its arguments or environment"
                    : error == EACCES ? "make it executable for the user that runs it"
                                      : "");
    }
    if (name.find('/') == std::string::npos)
        return fail(ErrorKind::not_found, "start", name, "not found in PATH (" + path_of(request.environment) + ")",
                    "install it, or name it by its path");
    const std::string path = name.starts_with('/') || request.directory.empty() ? name : request.directory + "/" + name;
    if (::access(path.c_str(), F_OK) == 0)
        return fail(ErrorKind::not_found, "start", name, "its interpreter (#! line or dynamic loader) does not exist");
    return fail(ErrorKind::not_found, "start", name, "no such file", "check its path and the directory it starts in");
}

Error explain(const SpawnRequest& request, const Report& report) {
    const std::string& name = request.argv[0];
    const std::string reason = report.error ? std::strerror(report.error) : "";
    const auto unavailable = [&](std::string why) {
        return fail(ErrorKind::unavailable, "start", name, std::move(why) + ": " + reason);
    };
    switch (report.step) {
    case Step::session: return unavailable("no session of its own could be made");
    case Step::cgroup: return unavailable("it could not join its cgroup");
    case Step::affinity:
        return fail(ErrorKind::bad_input, "start", name,
                    "the kernel refuses the CPUs " + request.cpus->text() + ": " + reason,
                    "name CPUs that exist, are online and are allowed to this agent");
    case Step::affinity_narrower:
        return fail(ErrorKind::bad_input, "start", name,
                    "the kernel gives only a part of the CPUs " + request.cpus->text(),
                    "name CPUs that exist, are online and are allowed to this agent");
    case Step::memory_nodes:
        return fail(ErrorKind::bad_input, "start", name,
                    "the kernel refuses the memory nodes " + request.memory_nodes->text() + ": " + reason);
    case Step::indirect_branch:
    case Step::store_bypass: {
        const bool branch = report.step == Step::indirect_branch;
        const auto wish = branch ? request.speculation.indirect_branch : request.speculation.store_bypass;
        return fail(ErrorKind::forbidden, "start", name,
                    judge_speculation(branch ? SpeculationKind::indirect_branch : SpeculationKind::store_bypass, *wish,
                                      report.error, report.detail)
                        .words);
    }
    case Step::user:
        return fail(ErrorKind::forbidden, "start", name,
                    "it could not become the user " + request.user->name + ": " + reason,
                    "only root can become another user");
    case Step::privileges: return unavailable("new privileges could not be ruled out");
    case Step::processes: return unavailable("its number of processes could not be limited");
    case Step::parent: return unavailable("its end could not be tied to that of its parent");
    case Step::descriptors: return unavailable("its input and output could not be arranged");
    case Step::directory:
        return fail(report.error == EACCES ? ErrorKind::forbidden : ErrorKind::not_found, "start", name,
                    "its directory " + request.directory + " can't be entered: " + reason);
    case Step::program: break;
    }
    return explain_program(request, report.error);
}

// No signal handler of this program may run in the child.
class AllSignalsBlocked {
  public:
    AllSignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

} // namespace

spawning::Plan::Plan(const SpawnRequest& r)
    : request(r), parent(::getpid()), cpus(r.cpus.value_or(CpuList())),
      memory_nodes(r.memory_nodes.value_or(CpuList())) {
    if (r.argv[0].find('/') != std::string::npos) {
        candidates.push_back(r.argv[0]);
    } else {
        const std::string path = path_of(r.environment);
        for (std::size_t at = 0; at <= path.size();) {
            const std::size_t end = std::min(path.find(':', at), path.size());
            if (end > at) candidates.push_back(path.substr(at, end - at) + "/" + r.argv[0]);
            at = end + 1;
        }
    }
    for (const auto& candidate : candidates) candidate_texts.push_back(candidate.c_str());
    for (const auto& argument : r.argv) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (const auto& [name, value] : r.environment) environment_texts.push_back(name + "=" + value);
    for (const auto& text : environment_texts) envp.push_back(const_cast<char*>(text.c_str()));
    envp.push_back(nullptr);
}

Environment current_environment() {
    Environment all;
    for (char** entry = environ; entry && *entry; ++entry) {
        const std::string_view text = *entry;
        const auto equals = text.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        all.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return all;
}

Result<SpawnedProcess> spawn(const SpawnRequest& request) {
    PERFRIG_CHECK(check(request));
    const Plan plan(request);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "start", request.argv[0]);
    const UniqueFd from_child(ends[0]);
    UniqueFd to_parent(ends[1]);
    SpawnedProcess process;
    {
        const AllSignalsBlocked blocked;
        process.start_ns = SystemClock().monotonic_ns();
        process.pid = ::fork();
        if (process.pid == 0) spawning::run_child(plan, ends[1]);
    }
    if (process.pid < 0) return fail_errno(errno, "start", request.argv[0], "too many processes, or too little memory");
    to_parent.reset();
    Report report;
    ssize_t got = 0;
    do got = ::read(from_child.get(), &report, sizeof report);
    while (got < 0 && errno == EINTR);
    if (got == 0) return process; // exec closed the pipe
    while (::waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (got != sizeof report)
        return fail(ErrorKind::internal, "start", request.argv[0], "the child gave no whole report");
    return explain(request, report);
}

} // namespace perfrig
