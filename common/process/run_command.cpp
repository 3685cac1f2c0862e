#include "common/process/run_command.hpp"

#include "common/base/units.hpp"
#include "common/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>

namespace perfrig {

namespace {

constexpr int step_ms = 10; // between looks at a child without a pidfd

// One end of a pipe that the command writes to, and what came out of it.
struct Capture {
    UniqueFd from;
    UniqueFd to; // the command's end; closed after the start
    std::string text;
    bool truncated = false;

    Result<void> open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "make a pipe", "");
        from.reset(ends[0]);
        to.reset(ends[1]);
        ::fcntl(ends[0], F_SETFL, O_NONBLOCK); // our end alone: the two ends have flags of their own
        return {};
    }
    // Reads what is there; at its end it closes.
    void drain(std::size_t most_bytes) {
        char chunk[16384];
        while (from) {
            const ssize_t n = ::read(from.get(), chunk, sizeof chunk);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) return;
            if (n <= 0) {
                from.reset();
                return;
            }
            const std::size_t room = most_bytes - text.size();
            text.append(chunk, std::min(room, static_cast<std::size_t>(n)));
            truncated = truncated || static_cast<std::size_t>(n) > room;
            if (static_cast<std::size_t>(n) < sizeof chunk) return; // let the deadline be looked at
        }
    }
};

std::string tail(const std::string& text) {
    constexpr std::size_t most = 300;
    std::string end = text.size() > most ? "..." + text.substr(text.size() - most) : text;
    while (end.ends_with('\n')) end.pop_back();
    return end;
}

} // namespace

Result<CommandResult> run_command(std::vector<std::string> argv, Deadline deadline, const CommandOptions& options) {
    Capture out, err;
    PERFRIG_CHECK(out.open());
    PERFRIG_CHECK(err.open());
    SpawnRequest request;
    request.argv = std::move(argv);
    request.environment = options.environment;
    request.directory = options.directory;
    request.user = options.user;
    request.new_session = false; // Ctrl-C of a person at the terminal still reaches nobody but us: own process group
    request.stdout_fd = out.to.get();
    request.stderr_fd = err.to.get();
    const auto began = std::chrono::steady_clock::now();
    PERFRIG_TRY(Child child, Child::start(request));
    out.to.reset();
    err.to.reset();
    // The child stays unreaped until the end, so that its process group can be killed at any time.
    while (out.from || err.from || !child.ended()) {
        if (!options.wait_for_output && child.ended()) break;
        if (deadline.passed()) {
            child.kill();
            out.drain(options.most_bytes);
            err.drain(options.most_bytes);
            const auto spent = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - began);
            const std::string said = tail(err.text.empty() ? out.text : err.text);
            return fail(ErrorKind::timed_out, "run", request.argv[0],
                        "it did not end within " + format_duration(spent) + " and was killed" +
                            (said.empty() ? "" : "; its last words: " + said));
        }
        pollfd ready[3] = {{out.from.get(), POLLIN, 0}, {err.from.get(), POLLIN, 0}, {child.pidfd(), POLLIN, 0}};
        // An ended child's pidfd is always readable: once it has ended only its output is waited for.
        if (child.ended()) ready[2].fd = -1;
        const int left_ms = static_cast<int>(std::min<std::int64_t>(deadline.left().count() + 1, 60'000));
        ::poll(ready, 3, child.pidfd() >= 0 || child.ended() ? left_ms : std::min(left_ms, step_ms));
        out.drain(options.most_bytes);
        err.drain(options.most_bytes);
    }
    out.drain(options.most_bytes);
    err.drain(options.most_bytes);
    PERFRIG_TRY(const ExitStatus exit, child.wait(deadline.earlier_of(Deadline::in(Milliseconds(1000)))));
    return CommandResult{exit, std::move(out.text), std::move(err.text), out.truncated || err.truncated};
}

Result<CommandResult> run_command(std::vector<std::string> argv, Environment environment, std::string directory,
                                  Deadline deadline, std::size_t most_bytes) {
    CommandOptions options;
    options.environment = std::move(environment);
    options.directory = std::move(directory);
    options.most_bytes = most_bytes;
    return run_command(std::move(argv), deadline, options);
}

} // namespace perfrig
