#include "common/topology/topology.hpp"
#include "common/topology/sysfs_read.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/temp_tree.hpp"

using namespace perfrig;
using perfrig::test::TempTree;

namespace {

const std::string sys_cpu = "/sys/devices/system/cpu";

void add_cpu(TempTree& t, int id, int package, int core, const std::string& siblings, const std::string& l3) {
    const std::string folder = sys_cpu + "/cpu" + std::to_string(id);
    t.write(folder + "/topology/physical_package_id", std::to_string(package) + "\n");
    t.write(folder + "/topology/core_id", std::to_string(core) + "\n");
    t.write(folder + "/topology/thread_siblings_list", siblings + "\n");
    t.write(folder + "/cache/index0/level", "1\n").write(folder + "/cache/index0/shared_cpu_list", siblings + "\n");
    t.write(folder + "/cache/index3/level", "3\n").write(folder + "/cache/index3/shared_cpu_list", l3 + "\n");
}

// Two sockets with interleaved ids, two threads a core, CPU 7 offline.
void write_two_sockets(TempTree& t) {
    t.write(sys_cpu + "/possible", "0-7\n").write(sys_cpu + "/present", "0-7\n").write(sys_cpu + "/online", "0-6\n");
    t.write(sys_cpu + "/offline", "7\n")
        .write(sys_cpu + "/isolated", "4-5\n")
        .write(sys_cpu + "/nohz_full", "  (null)\n");
    for (int id = 0; id < 7; ++id) {
        const int core = id % 4;
        const std::string siblings = core == 3 ? "3" : std::to_string(core) + "," + std::to_string(core + 4);
        add_cpu(t, id, id % 2, core / 2, siblings, id % 2 == 0 ? "0,2,4,6" : "1,3,5");
    }
    t.write(sys_cpu + "/cpu0/cpufreq/cpuinfo_max_freq", "2300000\n");
    t.write("/sys/devices/system/node/node0/cpulist", "0,2,4,6\n");
    t.write("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16 kB\nNode 0 MemFree:  1 kB\n");
    t.write("/sys/devices/system/node/node1/cpumap", "000000aa\n");
    t.write("/sys/devices/system/node/node2/cpulist", "\n");
    t.write("/sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:       0 kB\n");
}

} // namespace

TEST_CASE("two sockets with interleaved ids read as cores, caches and memory nodes") {
    TempTree t;
    write_two_sockets(t);
    const auto read = read_topology(t.tree());
    REQUIRE(read);
    CHECK(read->online.text() == "0-6");
    CHECK(read->offline.text() == "7");
    CHECK(read->isolated.text() == "4-5");
    CHECK(read->nohz_full.empty());
    CHECK(read->cpus.size() == 7);
    CHECK(read->cores() == 4);
    const CpuTopology& five = read->cpus.at(5);
    CHECK(five.package == 1);
    CHECK(five.smt_siblings.text() == "1,5");
    CHECK(five.l3_group.text() == "1,3,5");
    CHECK(five.node == 1);
    CHECK_FALSE(five.max_khz);
    CHECK(read->cpus.at(0).max_khz == 2'300'000);
    CHECK(read->nodes.at(0).memory_bytes == 16384u);
    CHECK(read->nodes.at(1).cpus.text() == "1,3,5,7");
    CHECK(read->memory_nodes().text() == "0-1"); // node 2 says that it has none
    CHECK(to_json(*read)["cpus"][6]["smt_siblings"] == "2,6");
    CHECK(to_json(*read)["nodes"][1]["memory_bytes"].is_null());
}

TEST_CASE("equal core ids in different packages are different cores, and a package of -1 is unknown") {
    TempTree t;
    t.write(sys_cpu + "/online", "0-1\n");
    add_cpu(t, 0, -1, 0, "0", "0");
    add_cpu(t, 1, -1, 0, "1", "1");
    const auto read = read_topology(t.tree());
    REQUIRE(read);
    CHECK(read->cores() == 2);
    CHECK_FALSE(read->cpus.at(0).package);
    CHECK(read->nodes.empty());
}

TEST_CASE("a kernel without list files is read from the cpuN folders") {
    TempTree t;
    for (int id : {0, 1, 2, 10}) add_cpu(t, id, 0, id, std::to_string(id), "0-10");
    t.write(sys_cpu + "/cpu1/online", "0\n").write(sys_cpu + "/cpu2/online", "1\n");
    t.write(sys_cpu + "/cpufreq/boost", "1\n");
    const auto read = read_topology(t.tree());
    REQUIRE(read);
    CHECK(read->online.text() == "0,2,10");
    CHECK(read->offline.text() == "1");
    CHECK(read->present.text() == "0-2,10");
}

TEST_CASE("sysfs that isn't understood is an error that names the file, and no sysfs at all is one too") {
    TempTree t;
    CHECK_FALSE(read_topology(t.tree()));
    write_two_sockets(t);
    t.write(sys_cpu + "/cpu2/topology/core_id", "two\n");
    const auto read = read_topology(t.tree());
    REQUIRE_FALSE(read);
    CHECK(read.error().text().find("/cpu2/topology/core_id") != std::string::npos);
}

TEST_CASE("masks are read in words of 32 bits, the lowest last") {
    CHECK(sysfs::parse_mask("00000001,80000003\n").value().text() == "0-1,31-32");
    CHECK(sysfs::parse_mask("ff").value().text() == "0-7");
    CHECK(sysfs::parse_mask("0").value().empty());
    CHECK_FALSE(sysfs::parse_mask("0x3"));
    CHECK_FALSE(sysfs::parse_mask("3,"));
    CHECK_FALSE(sysfs::parse_mask("123456789"));
}

TEST_CASE("this machine's own topology can be read") {
    const auto read = read_topology(FileTree("/"));
    REQUIRE(read);
    CHECK(read->present.contains_all(read->online));
    CHECK(read->cpus.size() == read->online.size());
    CHECK(read->cores() >= 1);
}
