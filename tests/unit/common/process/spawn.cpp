#include "common/process/spawn.hpp"

#include "common/base/file_tree.hpp"
#include "common/process/child.hpp"
#include "common/process/run_command.hpp"
#include "tests/support/doctest.hpp"

#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace perfrig;

namespace {

const Environment plain = {{"PATH", "/usr/bin:/bin"}};

Deadline soon() { return Deadline::in(Milliseconds(20'000)); }

// A folder of its own for one test case, gone at its end.
struct Folder {
    std::string path;
    Folder() {
        char name[] = "/tmp/perfrig-test-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { static_cast<void>(run_command({"rm", "-rf", path}, soon())); }
    std::string write(const std::string& name, std::string_view text, int mode) const {
        const std::string file = path + "/" + name;
        REQUIRE(write_file_atomically(file, text, mode));
        return file;
    }
};

// What a program prints that was started with these CPUs, environment and so on.
std::string printed_by(SpawnRequest request) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    request.stdout_fd = to.get();
    auto child = Child::start(request);
    REQUIRE(child);
    to.reset();
    std::string text;
    char chunk[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), chunk, sizeof chunk)) > 0;)
        text.append(chunk, static_cast<std::size_t>(n));
    CHECK(child->wait(soon()));
    return text;
}

CpuList own_cpus() {
    cpu_set_t set;
    CHECK(::sched_getaffinity(0, sizeof set, &set) == 0);
    CpuList list;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) list.add(i);
    return list;
}

} // namespace

TEST_CASE("a missing program is named together with the PATH that was searched") {
    SpawnRequest request;
    request.argv = {"no-such-program-here"};
    request.environment = plain;
    const auto process = spawn(request);
    REQUIRE(!process);
    CHECK(process.error().kind == ErrorKind::not_found);
    CHECK(process.error().text().find("can't start no-such-program-here: not found in PATH (/usr/bin:/bin)") == 0);
}

TEST_CASE("a file that is not executable, one without an interpreter and one of no known form are told apart") {
    const Folder folder;
    SpawnRequest request;
    request.environment = plain;
    request.argv = {folder.write("plain", "echo hello\n", 0644)};
    auto process = spawn(request);
    REQUIRE(!process);
    CHECK(process.error().kind == ErrorKind::forbidden);
    CHECK(process.error().why == "Permission denied");

    request.argv = {folder.write("script", "#!/no/such/interpreter\n", 0755)};
    process = spawn(request);
    REQUIRE(!process);
    CHECK(process.error().why.find("interpreter") != std::string::npos);

    request.argv = {folder.write("garbage", "\x01\x02\x03", 0755)};
    process = spawn(request);
    REQUIRE(!process);
    CHECK(process.error().why == "Exec format error");
}

TEST_CASE("the environment of a process is exactly what was given") {
    ::setenv("PERFRIG_TEST_LEAK", "1", 1);
    SpawnRequest request;
    request.argv = {"env"};
    request.environment = {{"PATH", "/usr/bin:/bin"}, {"ONLY", "a b=c"}};
    CHECK(printed_by(request) == "PATH=/usr/bin:/bin\nONLY=a b=c\n");
    request.environment = {};
    request.argv = {"/usr/bin/env"};
    CHECK(printed_by(request) == "");
}

TEST_CASE("a process starts pinned, in a session of its own, with default signals and no other descriptors") {
    const UniqueFd leak(::open("/dev/null", O_RDONLY)); // not close-on-exec on purpose
    ::signal(SIGUSR1, SIG_IGN);
    const CpuList all = own_cpus();
    const CpuList last{*std::prev(all.end())};
    SpawnRequest request;
    request.argv = {"sh", "-c", "cat /proc/self/status; cut -d' ' -f6 /proc/$$/stat; echo $$"};
    request.environment = plain;
    request.cpus = last;
    const std::string text = printed_by(request);
    ::signal(SIGUSR1, SIG_DFL);
    request.argv = {"ls", "/proc/self/fd"};
    CHECK(printed_by(request) == "0\n1\n2\n3\n"); // 3 is the folder that ls reads
    CHECK(text.find("Cpus_allowed_list:\t" + last.text() + "\n") != std::string::npos);
    CHECK(text.find("SigIgn:\t0000000000000000\n") != std::string::npos);
    CHECK(text.find("SigBlk:\t0000000000000000\n") != std::string::npos);
    // session id and pid are the last two lines, and equal
    const auto last_line = text.rfind('\n', text.size() - 2);
    const auto line_before = text.rfind('\n', last_line - 1);
    CHECK(text.substr(line_before + 1, last_line - line_before - 1) ==
          text.substr(last_line + 1, text.size() - last_line - 2));
}

TEST_CASE("CPUs that don't exist are refused before anything starts, alone and beside one that does") {
    SpawnRequest request;
    request.argv = {"true"};
    request.environment = plain;
    for (const CpuList& cpus : {CpuList{4000}, CpuList{*own_cpus().begin(), 4000}}) {
        request.cpus = cpus;
        const auto process = spawn(request);
        REQUIRE(!process);
        CHECK(process.error().kind == ErrorKind::bad_input);
        CHECK(process.error().why.find(cpus.text()) != std::string::npos);
    }
}

TEST_CASE("zero bytes, names with = and an empty command are refused") {
    SpawnRequest request;
    CHECK(!spawn(request));
    request.argv = {"true", std::string("a\0b", 3)};
    CHECK(!spawn(request));
    request.argv = {"true"};
    request.environment = {{"A=B", "c"}};
    CHECK(!spawn(request));
}

TEST_CASE("a process becomes the user that was asked for, with its groups, and root is refused") {
    SpawnRequest request;
    request.argv = {"id"};
    request.environment = plain;
    request.user = User{"root", 0, 0, {}, "/"};
    auto process = spawn(request);
    REQUIRE(!process);
    CHECK(process.error().kind == ErrorKind::forbidden);
    const auto nobody = find_user(FileTree(), "nobody");
    REQUIRE(nobody);
    request.user = *nobody;
    if (::geteuid() == 0) {
        CHECK(printed_by(request).starts_with("uid=" + std::to_string(nobody->uid) + "(nobody)"));
        request.argv = {"sh", "-c", "grep -E 'Groups|CapEff|CapPrm' /proc/self/status"};
        CHECK(printed_by(request) == "Groups:\t \nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
    } else {
        MESSAGE("not root: a process can't become another user; skipped");
    }
}

TEST_CASE("a directory that can't be entered is named") {
    SpawnRequest request;
    request.argv = {"true"};
    request.environment = plain;
    request.directory = "/no/such/directory";
    const auto process = spawn(request);
    REQUIRE(!process);
    CHECK(process.error().why.find("/no/such/directory") != std::string::npos);
}

TEST_CASE("a process that shall gain no privileges, and no more processes than allowed, finds both set") {
    SpawnRequest request;
    request.argv = {"sh", "-c",
                    "grep NoNewPrivs /proc/self/status; awk '/^Max processes/ {print $3, $4}' /proc/self/limits"};
    request.environment = plain;
    rlimit ours{};
    REQUIRE(::getrlimit(RLIMIT_NPROC, &ours) == 0);
    const auto most = static_cast<std::int64_t>(std::min<rlim_t>(ours.rlim_max, 4322) - 1); // lower than what we have
    const std::string limits = std::to_string(most) + " " + std::to_string(most) + "\n";
    const bool without_before = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; // as containers are started
    request.most_processes_of_user = most;
    request.no_new_privileges = true;
    CHECK(printed_by(request) == "NoNewPrivs:\t1\n" + limits);
    request.no_new_privileges = false;
    CHECK(printed_by(request) == std::string("NoNewPrivs:\t") + (without_before ? "1" : "0") + "\n" + limits);
}

TEST_CASE("a process that is tied to its parent dies with it, one that is not lives on") {
    for (const bool tied : {true, false}) {
        CAPTURE(tied);
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        const UniqueFd from(ends[0]);
        UniqueFd to(ends[1]);
        const pid_t parent = ::fork();
        REQUIRE(parent >= 0);
        if (parent == 0) {
            SpawnRequest request;
            request.argv = {"sleep", "1000"};
            request.environment = plain;
            request.die_with_parent = tied;
            if (::geteuid() == 0) request.user = find_user(FileTree(), "nobody").value(); // clears what was set before
            const auto process = spawn(request);
            const pid_t pid = process ? process->pid : -1;
            if (::write(ends[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
            for (;;) ::pause();
        }
        to.reset();
        pid_t child = -1;
        REQUIRE(::read(from.get(), &child, sizeof child) == sizeof child);
        REQUIRE(child > 0);
        const auto state = [&] {
            const auto stat = FileTree().read("/proc/" + std::to_string(child) + "/stat");
            return stat ? stat->substr(stat->rfind(')') + 2, 1) : std::string("gone");
        };
        ::kill(parent, SIGKILL);
        ::waitpid(parent, nullptr, 0);
        if (tied) {
            const auto deadline = soon();
            while (state() != "gone" && state() != "Z" && !deadline.passed()) ::usleep(5'000);
            CHECK((state() == "gone" || state() == "Z"));
        } else {
            CHECK((state() == "S" || state() == "R"));
            ::kill(child, SIGKILL);
        }
    }
}
