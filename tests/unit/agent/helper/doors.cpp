// What helper and guardian refuse: rubbish, requests beyond the list, paths that lead out, root.
#include "agent/helper/channel.hpp"
#include "agent/helper/requests.hpp"
#include "agent/helper/work_base.hpp"
#include "tests/unit/agent/helper/support.hpp"

#include <fstream>
#include <sys/socket.h>

using namespace perfrig;
using namespace perfrig::test;

namespace {

// What comes back for raw bytes; the socket is the client's own.
Message answer_to(int socket, std::string_view bytes, const std::vector<int>& fds = {}) {
    REQUIRE(send_packet(socket, bytes, fds, soon()));
    const auto packet = receive_packet(socket, soon());
    REQUIRE(packet);
    REQUIRE(*packet);
    const auto message = parse_json((*packet)->text, "an answer");
    REQUIRE(message);
    return *message;
}

std::vector<std::string> rubbish() {
    return {
        "x",
        std::string("\0\0\0", 3),
        "{}",
        "[]",
        "null",
        "{\"verb\":",
        R"({"verb":"shell","id":1})",
        R"({"verb":7,"id":1})",
        R"({"verb":"begin_run","id":1})",
        R"({"verb":"begin_run","id":-1,"run_id":1,"attempt":1})",
        R"({"verb":"begin_run","id":1,"run_id":0,"attempt":1})",
        R"({"verb":"begin_run","id":1,"run_id":"../1","attempt":1})",
        R"({"verb":"begin_run","id":1,"run_id":1,"attempt":1,"user":"root"})",
        R"({"verb":"begin_run","id":1,"run_id":1.5,"attempt":1})",
        R"({"verb":"begin_run","id":1,"run_id":18446744073709551615,"attempt":1})",
        R"({"verb":"end_run","id":1,"run_id":1,"remove_directory":"yes"})",
        R"({"verb":"open_file","id":1,"run_id":1,"attempt":1,"path":"../../etc/shadow"})",
        R"({"verb":"write_file","id":1,"run_id":1,"attempt":1,"path":"a","mode":420})", // without its content
        R"({"verb":"open_counts","id":1,"cpus":"3-1"})",
        R"({"verb":"open_counts","id":1,"cpus":"0","tids":[1]})",
        R"({"verb":"spawn","id":1,"name":"a","role":"b","argv":["touch","/tmp/x"],"environment":[],"uid":0})",
        R"({"verb":"spawn","id":1,"name":"../a","role":"b","argv":["true"],"environment":[]})",
        R"({"verb":"spawn","id":1,"name":"a","role":"b","argv":[],"environment":[]})",
        R"({"verb":"spawn","id":1,"name":"a","role":"b","argv":["true"],"environment":[],"directory":"../.."})",
        R"({"verb":"spawn","id":1,"name":"a","role":"b","argv":["true"],"environment":{"A":"B"}})",
        R"({"verb":"spawn","id":1,"name":"a","role":"b","argv":["true"],"environment":[],"cpus":"3-1"})",
        R"({"verb":"spawn","id":1,"name":"a","role":"b","argv":["true"],"environment":[],"stdin":true})", // without it
        R"({"verb":"signal","id":1,"pid":-1,"signal":9})",
        R"({"verb":"signal","id":1,"pid":1,"signal":9})",
        std::string(100, '[') + std::string(100, ']'),
        std::string(most_message_bytes, 'a')};
}

} // namespace

TEST_CASE("rubbish, wrong verbs and unknown members are answered by an error and nothing is done") {
    Bench bench;
    auto guard = bench.client->begin_run({1000, 1}, soon());
    REQUIRE(guard);
    for (const auto& text : rubbish()) {
        CAPTURE(text.substr(0, 100));
        for (const int socket : {bench.client->event_fd(), guard->event_fd()}) {
            const Message answer = answer_to(socket, text);
            CHECK(answer.contains("error"));
            CHECK_FALSE(answer.contains("ok"));
        }
    }
    for (const int socket : {bench.client->event_fd(), guard->event_fd()}) { // more descriptors than the verb takes
        const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        CHECK(answer_to(socket, R"({"verb":"facts","id":1})", {null.get()}).contains("error"));
        CHECK(answer_to(socket, R"({"verb":"end","id":1})", {null.get()}).contains("error"));
    }
    // The two go on, hold no descriptor of what was refused, and made nothing.
    CHECK(outcome_of(*guard, order({"echo", "well"})).out == "well\n");
    CHECK(bench.client->facts(soon()));
    CHECK(::access((bench.config.work_base + "/run-1-1").c_str(), F_OK) != 0);
    const auto open_files = FileTree().list("/proc/" + std::to_string(bench.client->helper_pid()) + "/fd");
    REQUIRE(open_files);
    CHECK(open_files->size() <= 3 + 5); // 0-2, agent, warden, children, base, notes
}

TEST_CASE("messages beyond the greatest size are refused whole") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    const std::string huge(most_message_bytes + 1, ' ');
    for (const int socket : {bench.client->event_fd(), guard->event_fd()}) {
        CHECK(!send_packet(socket, huge, {}, soon())); // our own side knows the bound
        REQUIRE(::send(socket, huge.data(), huge.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(huge.size())); // a stranger doesn't
        const auto packet = receive_packet(socket, soon());
        REQUIRE(packet);
        REQUIRE(*packet);
        CHECK((*packet)->text.find("it has more than 131072 bytes") != std::string::npos);
    }
    CHECK(outcome_of(*guard, order({"echo", "well"})).out == "well\n");
    CHECK(bench.client->facts(soon()));
}

TEST_CASE("a file is written as the workload's user, whole, with its mode and folders") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    const std::string script = "#!/bin/sh\necho from a script\n";
    REQUIRE(bench.client->write_file({1, 1}, "bin/deep/run.sh", 0755, script, soon()));
    CHECK(outcome_of(*guard, order({"./bin/deep/run.sh"})).out == "from a script\n");
    auto o = order({"./run.sh"});
    o.directory = "bin/deep";
    CHECK(outcome_of(*guard, o).out == "from a script\n");
    CHECK(outcome_of(*guard, order({"stat", "-c", "%a %u", "bin/deep/run.sh"})).out ==
          "755 " + std::to_string(bench.client->facts(soon())->workload_uid) + "\n");
    const std::string binary = std::string("\0\xff", 2) + std::string(most_file_bytes - 2, 'b');
    REQUIRE(bench.client->write_file({1, 1}, "data", 0600, binary, soon()));
    const auto file = bench.client->open_file({1, 1}, "data", soon());
    REQUIRE(file);
    std::string read_back(most_file_bytes + 1, ' ');
    std::size_t size = 0;
    for (ssize_t n = 0; (n = ::read(file->get(), read_back.data() + size, read_back.size() - size)) > 0;)
        size += static_cast<std::size_t>(n);
    CHECK(size == binary.size());
    CHECK(read_back.substr(0, size) == binary);
    REQUIRE(bench.client->write_file({1, 1}, "data", 0600, "new", soon()));
    CHECK(outcome_of(*guard, order({"cat", "data"})).out == "new");
    CHECK(outcome_of(*guard, order({"ls", "-A"})).out == "bin\ndata\n"); // nothing half-written lies about
}

TEST_CASE("paths that lead out of the run's directory are refused, links among them") {
    Bench bench;
    auto guard = bench.client->begin_run({1, 1}, soon());
    REQUIRE(guard);
    const std::string outside = bench.folder.path + "/outside";
    REQUIRE(run_command({"install", "-d", "-m", "0777", outside}, soon()));
    const std::string links =
        "ln -s " + outside + " folder-link; ln -s " + outside + "/made link; mkfifo pipe; mkdir real";
    REQUIRE(outcome_of(*guard, order({"sh", "-c", links})).exited.status.good());
    for (const char* path :
         {"../x", "a/../../x", "/tmp/x", "", ".", "a//b", "./a", "folder-link/x", "link", "pipe", "real"}) {
        CAPTURE(path);
        CHECK(!bench.client->write_file({1, 1}, path, 0644, "x", soon()));
        CHECK(!bench.client->open_file({1, 1}, path, soon()));
    }
    CHECK(!bench.client->write_file({1, 1}, std::string("a\0b", 3), 0644, "x", soon()));
    CHECK(!bench.client->write_file({1, 1}, "a", 04755, "x", soon())); // no set-user-id
    CHECK(!bench.client->write_file({1, 1}, "a", 0644, std::string(most_file_bytes + 1, 'x'), soon()));
    CHECK(!bench.client->write_file({9, 9}, "a", 0644, "x", soon())); // no such run
    const auto names = FileTree().list(outside);
    REQUIRE(names);
    CHECK(names->empty());
    CHECK(outcome_of(*guard, order({"ls", "-A"})).out == "folder-link\nlink\npipe\nreal\n");
}

TEST_CASE("content that comes in anything but a memory file is refused") {
    Bench bench;
    REQUIRE(bench.client->begin_run({1, 1}, soon()));
    auto guard = bench.client->begin_run({1, 2}, soon());
    REQUIRE(guard);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd from(ends[0]), to(ends[1]); // reading this would block the helper for ever
    CHECK(answer_to(bench.client->event_fd(),
                    R"({"verb":"write_file","id":1,"run_id":1,"attempt":2,"path":"a","mode":420})", {from.get()})
              .contains("error"));
}

TEST_CASE("the work folder must belong to whoever starts the helper, and be passable for the workload") {
    const Folder folder;
    auto config = config_in(folder.path);
    config.work_base = "relative";
    CHECK(!fork_helper(config));
    config.work_base = folder.path + "/open-to-all";
    REQUIRE(run_command({"install", "-d", "-m", "0777", config.work_base}, soon()));
    const auto refused = fork_helper(config);
    REQUIRE(!refused);
    CHECK(refused.error().kind == ErrorKind::forbidden);
    if (!is_root()) {
        MESSAGE("not root: no other user to lock out; skipped");
        return;
    }
    REQUIRE(run_command({"install", "-d", "-m", "0700", folder.path + "/locked"}, soon()));
    config.work_base = folder.path + "/locked/work";
    const auto unreachable = fork_helper(config);
    REQUIRE(!unreachable);
    CHECK(unreachable.error().why == "Permission denied");
    CHECK(unreachable.error().tried.find("nobody") != std::string::npos);
}

TEST_CASE("root without unprivileged users for agent and workloads is refused") {
    if (!is_root()) {
        MESSAGE("not root: skipped");
        return;
    }
    const Folder folder;
    for (const char* user : {"", "root", "0:0", "no-such-user"}) {
        CAPTURE(user);
        auto config = config_in(folder.path);
        config.workload_user = user;
        CHECK(!fork_helper(config));
        config = config_in(folder.path);
        config.agent_user = user;
        CHECK(!start_helper(config));
    }
    CHECK(::geteuid() == 0);
}

TEST_CASE("the agent gives root away for good and still begins runs under the workload's user") {
    const Folder folder;
    const auto config = config_in(folder.path);
    const pid_t agent = ::fork(); // it is for good, so not in this process
    if (agent == 0) {
        auto client = start_helper(config);
        if (!client) ::_exit(1);
        if (is_root() || ::setuid(0) == 0) ::_exit(2);
        auto guard = client->begin_run({1, 1}, soon());
        if (!guard) ::_exit(3);
        const auto spawned = guard->spawn(order({"sh", "-c", "id -u > who; exit 7"}), soon());
        if (!spawned) ::_exit(4);
        const auto exited = guard->next_event(soon());
        if (!exited || exited->status.code != 7) ::_exit(5);
        if (!client->open_file({1, 1}, "who", soon())) ::_exit(6);
        if (!guard->end(soon())) ::_exit(7);
        ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(agent, &status, 0) == agent);
    CHECK(ExitStatus::from_wait_status(status).text() == "0");
    const auto who = read_file(config.work_base + "/run-1-1/who");
    REQUIRE(who);
    CHECK(*who == std::to_string(is_root() ? find_user(FileTree(), "nobody")->uid : ::geteuid()) + "\n");
}

TEST_CASE("a run's name is read back in one spelling alone") {
    CHECK(parse_run_name("run-12-3") == RunName{12, 3});
    for (const char* text :
         {"run-12", "run-012-3", "run-1-0", "run-0-1", "run--1-1", "run-1-1x", "walk-1-1", "run-1-1/..", ""})
        CHECK_FALSE(parse_run_name(text));
}

TEST_CASE("notes of processes to be killed come from the helper's own folder, not from one that was put in its place") {
    Folder folder;
    const std::string path = folder.path + "/work";
    const auto base = WorkBase::open(path, {"own", ::geteuid(), ::getegid(), {}, "/"});
    REQUIRE(base);
    REQUIRE(base->note_begin({1, 1}, "boot"));
    REQUIRE(base->note_process({1, 1}, 4711, 5));
    REQUIRE(::rename(path.c_str(), (path + "-old").c_str()) == 0);
    for (const auto& made : {path, path + "/.runs"}) REQUIRE(::mkdir(made.c_str(), 0755) == 0);
    std::ofstream(path + "/.runs/run-1-1") << "boot\n1 1\n";
    const auto noted = base->noted();
    REQUIRE(noted.size() == 1);
    CHECK(noted[0].boot_id == "boot");
    CHECK(noted[0].processes == std::vector<std::pair<pid_t, std::uint64_t>>{{4711, 5}});
}
