#include "controller/cli/laptop.hpp"
#include "common/base/hash.hpp"
#include "common/process/child.hpp"
#include "controller/cli/client.hpp"
#include "controller/cli/default_profile.hpp"
#include "controller/cli/up_processes.hpp"
#include "tests/support/doctest.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace perfrig;
using namespace perfrig::cli;

namespace {
// `cores` cores with `threads` hardware threads each: siblings are n, n + cores, ...
Topology machine(int cores, int threads) {
    Topology t;
    for (int core = 0; core < cores; ++core)
        for (int thread = 0; thread < threads; ++thread) {
            CpuTopology cpu;
            cpu.cpu = core + thread * cores;
            for (int other = 0; other < threads; ++other) cpu.smt_siblings.add(core + other * cores);
            t.online.add(cpu.cpu);
            t.cpus[cpu.cpu] = cpu;
        }
    return t;
}
} // namespace

TEST_CASE("the default profile gives every role CPUs, splits no core and says what it shares") {
    for (const int threads : {1, 2})
        for (int cores = 1; cores <= 64; ++cores) {
            INFO(cores, " cores, ", threads, " threads");
            const Topology t = machine(cores, threads);
            const Profile p = default_profile(t, t.online);
            for (const char* role : {"app", "db", "load", "monitor"}) {
                REQUIRE(p.roles.contains(role));
                CHECK_FALSE(p.roles.at(role).empty());
                for (const int cpu : p.roles.at(role))
                    CHECK(p.roles.at(role).contains_all(t.cpus.at(cpu).smt_siblings));
            }
            for (const auto& [a, a_cpus] : p.roles)
                for (const auto& [b, b_cpus] : p.roles) {
                    if (a >= b || a_cpus.both(b_cpus).empty()) continue;
                    bool said = false;
                    for (const auto& group : p.share) said = said || (group.contains(a) && group.contains(b));
                    CHECK_MESSAGE(said, a, " and ", b, " overlap");
                }
            if (cores >= 4) CHECK(p.share.empty());
            if (cores >= 2) CHECK(p.roles.at("app").both(p.roles.at("load")).empty());
        }
}

TEST_CASE("the default profile stays within the CPUs that it is allowed") {
    const Topology t = machine(8, 1);
    for (const auto& [role, cpus] : default_profile(t, CpuList{2, 3}).roles) CHECK((CpuList{2, 3}.contains_all(cpus)));
}

TEST_CASE("down says which runs nobody ended, and ends in peace where there are none") {
    const auto folder = std::filesystem::temp_directory_path() / ("perfrig-down-" + random_hex(8));
    const auto notes = folder / "agent" / "work" / ".runs";
    std::filesystem::create_directories(notes);
    CHECK(down(folder, false));
    std::ofstream(notes / "run-3-1") << "boot\n";
    const auto told = down(folder, true);
    REQUIRE_FALSE(told);
    CHECK(told.error().text().find("run-3-1") != std::string::npos);
    CHECK(std::filesystem::exists(folder)); // what finds those processes again is kept
    std::filesystem::remove_all(folder);
}

TEST_CASE("a process that up started is known by its start time, and ended once") {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "60"};
    auto child = Child::start(request);
    REQUIRE(child);
    const auto process = identify(child->pid());
    REQUIRE(process);
    CHECK(alive(*process));
    CHECK_FALSE(alive({process->pid, process->start_ticks + 1})); // somebody else with the same pid
    const std::string file = "/tmp/perfrig-up-" + random_hex(6);
    REQUIRE(write_up_file(file, {{"agent", *process}}));
    CHECK(read_up_file(file).value().at("agent").start_ticks == process->start_ticks);
    ::unlink(file.c_str());
    REQUIRE(end_process(*process, Milliseconds(5'000)));
    CHECK_FALSE(alive(*process));
    CHECK(end_process(*process, Milliseconds(10)).has_value()); // again does no harm
}

TEST_CASE("without a token the command line says how to get one") {
    ::unsetenv("PERFRIG_TOKEN");
    ::unsetenv("PERFRIG_TOKEN_FILE");
    ::unsetenv("PERFRIG_URL");
    const auto found = find_connection("", "", "/nonexistent");
    REQUIRE_FALSE(found);
    CHECK(found.error().remedy.find("perfrig up") != std::string::npos);
}
