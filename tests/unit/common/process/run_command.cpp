#include "common/process/run_command.hpp"

#include "common/base/file_tree.hpp"
#include "common/process/child.hpp"
#include "tests/support/doctest.hpp"

#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace perfrig;

namespace {

Deadline soon() { return Deadline::in(Milliseconds(20'000)); }

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

bool gone_within(pid_t pid, Milliseconds time) {
    const auto deadline = Deadline::in(time);
    while (exists(pid) && !deadline.passed()) std::this_thread::sleep_for(Milliseconds(5));
    return !exists(pid);
}

SpawnRequest sleeper(const char* seconds) {
    SpawnRequest request;
    request.argv = {"sleep", seconds};
    request.environment = {{"PATH", "/usr/bin:/bin"}};
    return request;
}

} // namespace

TEST_CASE("a command's output, errors and exit code come back apart") {
    const auto result = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"}, soon());
    REQUIRE(result);
    CHECK(result->out == "out\n");
    CHECK(result->err == "err\n");
    CHECK(result->exit == ExitStatus{3, 0});
    CHECK(result->exit.text() == "exit 3");
    CHECK_FALSE(result->truncated);
}

TEST_CASE("a command that a signal ended says which") {
    const auto result = run_command({"sh", "-c", "kill -9 $$"}, soon());
    REQUIRE(result);
    CHECK(result->exit.text() == "signal 9 (Killed)");
    CHECK_FALSE(result->exit.good());
    CHECK(ExitStatus{}.text() == "0");
}

TEST_CASE("output beyond the bound is read and dropped, and the command isn't blocked by it") {
    CommandOptions options;
    options.most_bytes = 1000;
    const auto result = run_command({"sh", "-c", "head -c 3000000 /dev/zero; echo done >&2"}, soon(), options);
    REQUIRE(result);
    CHECK(result->out.size() == 1000);
    CHECK(result->truncated);
    CHECK(result->err == "done\n");
    CHECK(result->exit.good());
}

TEST_CASE("at the deadline the whole process group is killed and the last words are told") {
    const auto result = run_command({"sh", "-c", "sleep 1000 & echo $! >&2; wait"}, Deadline::in(Milliseconds(1500)));
    REQUIRE(!result);
    CHECK(result.error().kind == ErrorKind::timed_out);
    const auto words = result.error().why.rfind(": ");
    REQUIRE(words != std::string::npos);
    const pid_t grandchild = std::atoi(result.error().why.c_str() + words + 2);
    REQUIRE(grandchild > 1);
    CHECK(gone_within(grandchild, Milliseconds(10'000)));
}

TEST_CASE("an endless flood of output ends at the deadline") {
    const auto result = run_command({"yes"}, Deadline::in(Milliseconds(300)));
    REQUIRE(!result);
    CHECK(result.error().kind == ErrorKind::timed_out);
}

TEST_CASE("a daemon that keeps the output open does not hold back a caller that asked not to wait for it") {
    CommandOptions options;
    options.wait_for_output = false;
    const auto result = run_command({"sh", "-c", "setsid sleep 1000 & echo $!"}, soon(), options);
    REQUIRE(result);
    const pid_t daemon = std::atoi(result->out.c_str());
    REQUIRE(daemon > 1);
    CHECK(exists(daemon));
    ::kill(daemon, SIGKILL);
}

TEST_CASE("a command's input is empty") {
    const auto result = run_command({"cat"}, soon());
    REQUIRE(result);
    CHECK(result->out.empty());
}

TEST_CASE("a child is waited for and ended with a pidfd and without one") {
    for (const bool use_pidfd : {true, false}) {
        CAPTURE(use_pidfd);
        auto quick = Child::start(sleeper("0.01"), use_pidfd);
        REQUIRE(quick);
        const auto status = quick->wait(soon());
        REQUIRE(status);
        CHECK(status->good());
        CHECK(quick->signal_group(SIGTERM).error().kind == ErrorKind::not_found);

        auto slow = Child::start(sleeper("1000"), use_pidfd);
        REQUIRE(slow);
        const auto early = slow->wait(Deadline::in(Milliseconds(20)));
        REQUIRE(!early);
        CHECK(early.error().kind == ErrorKind::timed_out);
        CHECK_FALSE(slow->ended());
        CHECK(slow->stop(Milliseconds(10'000)) == ExitStatus{0, SIGTERM});
    }
}

TEST_CASE("a child that ignores the polite signal is killed after its grace") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    SpawnRequest request = sleeper("0");
    request.argv = {"sh", "-c", "trap '' TERM; echo; while :; do sleep 0.05; done"};
    request.stdout_fd = to.get();
    auto child = Child::start(request);
    REQUIRE(child);
    char ready = 0;
    REQUIRE(::read(from.get(), &ready, 1) == 1); // the trap is set
    CHECK(child->stop(Milliseconds(100)) == ExitStatus{0, SIGKILL});
}

TEST_CASE("nothing outlives the owner of a child") {
    pid_t pid = -1;
    {
        auto child = Child::start(sleeper("1000"));
        REQUIRE(child);
        pid = child->pid();
        auto moved = std::move(*child);
        CHECK(exists(pid));
    }
    CHECK_FALSE(exists(pid));
}
