#include "agent/run/fill_in.hpp"
#include "agent/run/free_ports.hpp"
#include "agent/run/placement_evidence.hpp"
#include "agent/run/readiness.hpp"
#include "agent/run/run_checks.hpp"
#include "agent/run/run_processes.hpp"

#include "tests/support/doctest.hpp"

#include <csignal>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

using namespace perfrig;

TEST_CASE("what only the agent knows is filled in, and a shell's own variables stay") {
    const FillIns values = fill_ins("/run/7", {{"http", 8080}});
    CHECK(fill_in("http://127.0.0.1:${port.http}/", values) == "http://127.0.0.1:8080/");
    CHECK(fill_in("${run.directory}/x ${run.directory}", values) == "/run/7/x /run/7");
    CHECK(fill_in("echo ${HOME} $1 ${port.other} ${", values) == "echo ${HOME} $1 ${port.other} ${");
    CHECK(fill_in("${${port.http}", values) == "${8080");
    CHECK(fill_in("", values).empty());
}

TEST_CASE("every text of a run is filled in: files, commands, readiness, tool options deep down") {
    ResolvedRun run;
    run.files = {{"a.conf", "listen ${port.p}"}};
    run.build = {{{"cc", "${run.directory}/a.c"}, {{"P", "${port.p}"}}, "${run.directory}"}};
    ServiceSpec service;
    service.command.argv = {"x", "${port.p}"};
    service.ready.target = "127.0.0.1:${port.p}";
    service.ready.argv = {"test", "${port.p}"};
    run.services = {service};
    ToolSpec tool;
    tool.options = {{"a", Json::array({Json{{"b", "${port.p}"}}, 7})}};
    run.tools = {tool};
    const ResolvedRun filled = fill_in(run, fill_ins("/d", {{"p", 99}}));
    CHECK(to_json(filled).dump().find("${") == std::string::npos);
    CHECK(filled.tools[0].options["a"][0]["b"] == "99");
    CHECK(filled.build[0].argv[1] == "/d/a.c");
}

TEST_CASE("ports lie outside the kernel's ephemeral range") {
    CHECK(ports_outside("32768\t60999").first == 10'000);
    CHECK(ports_outside("32768\t60999").last == 32'767);
    CHECK(ports_outside("1024\t40000").first == 40'001);
    CHECK(ports_outside("1024\t40000").last == 65'535);
    CHECK(ports_outside("rubbish").first == 10'000);
    CHECK(ports_outside("1024 65535").last == 65'535); // nothing is left outside: anywhere
}

TEST_CASE("ports that are found are free and differ") {
    const auto ports = find_free_ports(FileTree(), {"a", "b", "c"});
    REQUIRE(ports);
    std::set<std::uint16_t> different;
    for (const auto& [name, port] : *ports) different.insert(port);
    CHECK(different.size() == 3);
}

namespace {
// A TCP listener on a free port of loopback that answers each connection with `answer`.
class Listener {
  public:
    explicit Listener(std::string answer) : answer_(std::move(answer)), fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(::listen(fd_.get(), 8) == 0);
        socklen_t length = sizeof address;
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length);
        port = ntohs(address.sin_port);
        thread_ = std::thread([this] {
            while (true) {
                const UniqueFd peer(::accept(fd_.get(), nullptr, nullptr));
                if (!peer) return;
                if (answer_.empty()) continue;
                char buffer[4096];
                if (::recv(peer.get(), buffer, sizeof buffer, 0) > 0)
                    ::send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
            }
        });
    }
    ~Listener() {
        ::shutdown(fd_.get(), SHUT_RDWR);
        thread_.join();
    }
    std::uint16_t port = 0;

  private:
    std::string answer_;
    UniqueFd fd_;
    std::thread thread_;
};
Deadline soon() { return Deadline::in(Milliseconds(3'000)); }
} // namespace

TEST_CASE("a service is ready by TCP when something listens") {
    std::string target;
    {
        Listener listener("");
        target = "127.0.0.1:" + std::to_string(listener.port);
        CHECK(check_tcp(target, soon()));
        CHECK(check_tcp("localhost:" + std::to_string(listener.port), soon()));
    }
    const auto gone = check_tcp(target, soon());
    REQUIRE_FALSE(gone);
    CHECK(gone.error().kind != ErrorKind::bad_input); // may pass: ask again
    CHECK(check_tcp("some-host:80", soon()).error().kind == ErrorKind::bad_input);
    CHECK(check_tcp("127.0.0.1", soon()).error().kind == ErrorKind::bad_input);
}

TEST_CASE("a service is ready by HTTP when it answers well, not when it answers at all") {
    const auto answer = [](int status) {
        return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    };
    for (const auto& [status, ready] :
         {std::pair(200, true), std::pair(302, true), std::pair(404, false), std::pair(503, false)}) {
        Listener listener(answer(status));
        const auto checked = check_http("http://127.0.0.1:" + std::to_string(listener.port) + "/health", soon());
        CHECK(checked.has_value() == ready);
    }
    Listener silent("not http\r\n\r\n");
    CHECK_FALSE(check_http("http://127.0.0.1:" + std::to_string(silent.port) + "/", soon()));
    CHECK(check_http("no url", soon()).error().kind == ErrorKind::bad_input);
}

TEST_CASE("a service is ready by its log when a line matches, and stays ready") {
    LogReadiness log(LinePattern::compile("started in [0-9.]+s").value());
    log.line("starting");
    CHECK_FALSE(log.seen());
    log.line("server started in 1.5s");
    log.line("something else");
    CHECK(log.seen());
}

TEST_CASE("a line that begins as a log pattern does is not yet a match") {
    LogReadiness log(LinePattern::compile("listening on port [0-9]+").value());
    log.line("listening on port none");
    CHECK_FALSE(log.seen());
    log.line("listening on port 80");
    CHECK(log.seen());
}

TEST_CASE("evidence of placement: inside is silent, narrower is told, outside and nothing void the run") {
    const auto thread = [](pid_t tid, CpuList cpus) { return ThreadAffinity{"p", "app", 1, tid, "worker", cpus, {0}}; };
    PlacementEvidence inside("p", {0, 1});
    inside.add(thread(1, {0, 1}));
    inside.add(thread(2, {0}));
    CHECK_FALSE(inside.finding());
    CHECK(inside.observed(3).observed_cpus == "0-1");
    CHECK(inside.observed(3).observed_nodes == "0");

    PlacementEvidence narrower("p", {0, 1});
    narrower.add(thread(1, {1}));
    REQUIRE(narrower.finding());
    CHECK(narrower.finding()->severity == "info");

    PlacementEvidence outside("p", {0, 1});
    outside.add(thread(1, {0, 1}));
    outside.add(thread(77, {0, 1, 2}));
    REQUIRE(outside.finding());
    CHECK(outside.finding()->severity == "void");
    CHECK(outside.finding()->message.find("77") != std::string::npos);
    CHECK(outside.finding()->message.find("0-1") != std::string::npos); // both lists are named
    CHECK(outside.finding()->message.find("0-2") != std::string::npos);

    CHECK(PlacementEvidence("p", {0}).finding()->severity == "warning");
    CHECK_FALSE(PlacementEvidence("p", {}).finding()); // wasn't pinned
}

TEST_CASE("signals are known by name, with and without SIG") {
    CHECK(signal_number("TERM") == SIGTERM);
    CHECK(signal_number("SIGQUIT") == SIGQUIT);
    CHECK(signal_number("NONE") == 0);
}

TEST_CASE("a program is looked up in the workload's path, and one that is missing has a remedy") {
    CHECK(find_program("sh", "/nowhere:/bin:/usr/bin") == "/bin/sh");
    CHECK(find_program("sh", "").empty());
    CHECK(find_program("sh", "/nowhere").empty());
    CHECK(find_program("./built-later", "/bin") == "./built-later");
    CHECK(package_remedy("wrk").find("wrk") != std::string::npos);
}

TEST_CASE("without a cgroup the processes of a service are all that descend from it, not the first alone") {
    SpawnRequest request;
    request.argv = {"/bin/sh", "-c", "sleep 60 & (sleep 60 & exec sleep 60) & wait"};
    const auto spawned = spawn(request);
    REQUIRE(spawned);
    Spawned without;
    without.pid = spawned->pid;
    std::size_t most = 0;
    for (const Deadline deadline = Deadline::in(Milliseconds(10'000)); most < 4 && !deadline.passed(); ::usleep(5'000))
        most = pids_of(FileTree(), without).size();
    ::kill(-spawned->pid, SIGKILL);
    ::waitpid(spawned->pid, nullptr, 0);
    CHECK(most == 4);
}
