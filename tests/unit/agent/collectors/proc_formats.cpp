#include "agent/collectors/proc_formats.hpp"

#include "tests/support/doctest.hpp"

#include <string>

using namespace perfrig;

namespace {
const std::string stat_tail =
    " S 7 42 42 0 -1 4194560 100 200 0 0 123 45 6 7 20 0 3 0 9876 1000 10 18446744073709551615 0 0\n";
const std::string status =
    "Name:\tworker 1\nState:\tS (sleeping)\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3,8\nMems_allowed:\t1\n"
    "Mems_allowed_list:\t0\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t5\n";
} // namespace

TEST_CASE("a stat line is read from the last closing parenthesis on") {
    const std::string text = "4321 (a) R 1 (b c) )" + stat_tail;
    const auto stat = parse_stat(text);
    REQUIRE(stat);
    CHECK(stat->pid == 4321);
    CHECK(stat->comm == "a) R 1 (b c) ");
    CHECK(stat->state == 'S');
    CHECK(stat->parent == 7);
    CHECK(stat->process_group == 42);
    CHECK(stat->user_ticks == 123);
    CHECK(stat->system_ticks == 45);
    CHECK(stat->children_user_ticks == 6);
    CHECK(stat->children_system_ticks == 7);
    CHECK(stat->start_ticks == 9876);
}

TEST_CASE("every prefix of a stat line that lacks a field is refused") {
    const std::string text = "1 (x)" + stat_tail;
    const std::size_t needed = text.find("9876") + 4;
    for (std::size_t n = 0; n < text.find(" 9876"); ++n) CHECK_FALSE(parse_stat(std::string_view(text).substr(0, n)));
    CHECK(parse_stat(std::string_view(text).substr(0, needed)));
    CHECK_FALSE(parse_stat("x (y)" + stat_tail));
    CHECK_FALSE(parse_stat("(y)" + stat_tail));
    CHECK_FALSE(parse_stat(") 1 (" + stat_tail));
    CHECK(parse_stat("1 ()" + stat_tail)); // a thread may have an empty name
}

TEST_CASE("schedstat is three numbers and nothing else") {
    CHECK(parse_schedstat("1 2 3\n").value() == SchedStat{1, 2, 3});
    for (const char* bad : {"", "1 2", "1 2 3 4", "1 2 x\n", "-1 2 3\n", "1 2 3\n4\n", "99999999999999999999 1 1"}) {
        INFO(bad);
        CHECK_FALSE(parse_schedstat(bad));
    }
}

TEST_CASE("status gives switches and the lists of CPUs and nodes") {
    const auto s = parse_status(status);
    REQUIRE(s);
    CHECK(s->voluntary_switches == 17);
    CHECK(s->involuntary_switches == 5);
    CHECK(s->name == "worker 1");
    CHECK(s->cpus_allowed == "0-3,8");
    CHECK(s->mems_allowed == "0");
    for (std::size_t n = 0; n < status.size(); ++n) CHECK_FALSE(parse_status(std::string_view(status).substr(0, n)));
    CHECK(parse_status(status + "x86_Thread_features:\t\n"));
    CHECK_FALSE(parse_status("Cpus_allowed_list:\t0\n"));
    CHECK(unescaped_name("a\\nb\\\\c\\") == "a\nb\\c\\");
}

TEST_CASE("the CPU lines of /proc/stat are read, short ones of old kernels too") {
    const auto cpus = parse_proc_stat("cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 1 2 3 4\nintr 5 0 0\nctxt 7\n");
    REQUIRE(cpus);
    REQUIRE(cpus->size() == 2);
    CHECK(cpus->at(0).steal == 8);
    CHECK(cpus->at(1).cpu == 12);
    CHECK(cpus->at(1).iowait == 0);
    for (const char* bad : {"", "intr 1\n", "cpu  1\ncpu0 1 2 3\n", "cpu  1\ncpu0 1 2 3 x\n", "cpu  1\ncpu0 1 2 3 4",
                            "cpu  1\ncpux 1 2 3 4\n"}) {
        INFO(bad);
        CHECK_FALSE(parse_proc_stat(bad));
    }
}

TEST_CASE("meminfo is names with bytes or counts") {
    const auto m = parse_meminfo("MemTotal:       16 kB\nMemAvailable:   8 kB\nHugePages_Total:       3\n");
    REQUIRE(m);
    CHECK(m->at("MemTotal") == 16384);
    CHECK(m->at("HugePages_Total") == 3);
    for (const char* bad : {"", "MemTotal 16 kB\n", "MemTotal: x kB\n", "MemTotal: 16 kB", ":\n", "MemTotal:\n"}) {
        INFO(bad);
        CHECK_FALSE(parse_meminfo(bad));
    }
}

TEST_CASE("the small formats are read strictly") {
    CHECK(parse_statm_resident_pages("100 25 3 4 0 5 0\n").value() == 25);
    CHECK_FALSE(parse_statm_resident_pages("100\n"));
    CHECK(parse_single_number("2300000\n").value() == 2300000);
    CHECK_FALSE(parse_single_number("<unsupported>\n"));
    CHECK_FALSE(parse_single_number(""));
    CHECK(parse_pid_lines("1\n0\n33\n").value() == std::vector<std::int64_t>{1, 33});
    CHECK(parse_pid_lines("").value().empty());
    CHECK_FALSE(parse_pid_lines("1\nx\n"));
    CHECK(parse_last_pid("0.98 0.49 0.25 1/95 11841\n").value() == 11841);
    CHECK_FALSE(parse_last_pid("0.98\n"));
}
