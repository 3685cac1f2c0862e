#include "agent/host/inventory.hpp"

#include "tests/support/doctest.hpp"
#include "tests/support/temp_tree.hpp"

using namespace perfrig;
using perfrig::test::TempTree;

namespace {

const std::string cpu_root = "/sys/devices/system/cpu";

void write_machine(TempTree& t) {
    t.write("/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: A CPU @ 2.30GHz\n"
            "stepping\t: 7\nmicrocode\t: 0x5003604\nflags\t\t: fpu vme sse\n\nprocessor\t: 1\nmodel name\t: other\n");
    t.write("/proc/meminfo", "MemTotal:       16 kB\n");
    t.write("/proc/cmdline",
            "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ip=10.0.0.7::10.0.0.1 perfrig.boot=abc quiet dyndbg=\"a b\" -- x\n");
    t.write("/proc/sys/kernel/osrelease", "5.14.0\n")
        .write("/proc/sys/kernel/version", "#1 SMP\n")
        .write("/proc/sys/kernel/ostype", "Linux\n");
    t.write("/proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n");
    t.write("/proc/self/status",
            "Name:\tx\nSpeculation_Store_Bypass:\tthread vulnerable\nSpeculationIndirectBranch:\talways enabled\n");
    t.write("/etc/os-release", "ID=\"rhel\"\nVERSION_ID='9.6'\nPRETTY_NAME=\"Red Hat\"\nBUG_URL=x\n");
    t.write(cpu_root + "/online", "0-1\n")
        .write(cpu_root + "/smt/control", "on\n")
        .write(cpu_root + "/smt/active", "1\n");
    t.write(cpu_root + "/vulnerabilities/spectre_v2", "Mitigation: Enhanced IBRS, IBPB: conditional\n");
    t.write(cpu_root + "/cpu0/cpufreq/scaling_governor", "performance\n")
        .write(cpu_root + "/cpu1/cpufreq/scaling_governor", "powersave\n");
    t.write(cpu_root + "/intel_pstate/no_turbo", "1\n");
}

} // namespace

TEST_CASE("the facts of a machine are typed, and its strings are kept") {
    TempTree t;
    write_machine(t);
    const Inventory i = read_inventory(t.tree(), "v1 cpuset");
    CHECK(i.facts["cpu_model"] == "A CPU @ 2.30GHz");
    CHECK(i.facts["cpu_family"] == 6);
    CHECK(i.facts["cpu_microcode"] == "0x5003604");
    CHECK(i.facts["virtualisation"] == "none seen");
    CHECK(i.facts["memory_total_bytes"] == 16384);
    CHECK(i.facts["kernel_release"] == "5.14.0");
    CHECK(i.facts["command_line"] == "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ip=(removed) quiet dyndbg=\"a b\" -- x");
    CHECK(i.facts["vulnerabilities"]["spectre_v2"] == "Mitigation: Enhanced IBRS, IBPB: conditional");
    CHECK(i.facts["speculation"]["SpeculationIndirectBranch"] == "always enabled");
    CHECK(i.facts["os"]["VERSION_ID"] == "9.6");
    CHECK_FALSE(i.facts["os"].contains("BUG_URL"));
    CHECK(i.facts["topology"]["cpus_online"] == 2);
    CHECK(i.facts["governor"]["powersave"] == "1");
    CHECK(i.facts["turbo"] == false);
    CHECK(i.facts["cgroups"] == "v1 cpuset");
    CHECK(i.boot_id == "01234567-89ab-cdef-0123-456789abcdef");
    CHECK(i.fingerprint.size() == 64);
    CHECK(i.raw["topology"]["cpus"].size() == 2);
}

TEST_CASE("what can't be read is unknown, with the reason, and never missing") {
    TempTree t;
    const Inventory i = read_inventory(t.tree(), "");
    for (const char* name :
         {"cpu_model", "cpu_microcode", "kernel_release", "command_line", "memory_total_bytes", "vulnerabilities",
          "speculation", "governor", "turbo", "topology", "cgroups", "os", "smt_control", "boot_id"}) {
        INFO(name);
        CHECK(i.facts[name] == "unknown");
        CHECK_FALSE(i.facts["unknown"][name].get<std::string>().empty());
    }
    CHECK_FALSE(i.topology);
}

TEST_CASE("the fingerprint moves with a fact, and neither with the boot nor with where the tree lies") {
    TempTree a, b;
    write_machine(a);
    write_machine(b);
    const std::string before = read_inventory(a.tree(), "x").fingerprint;
    CHECK(read_inventory(b.tree(), "x").fingerprint == before);
    b.write("/proc/sys/kernel/random/boot_id", "11234567-89ab-cdef-0123-456789abcdef\n");
    b.write("/proc/cmdline",
            "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ip=10.0.0.9::10.0.0.1 perfrig.boot=def quiet dyndbg=\"a b\" -- x\n");
    CHECK(read_inventory(b.tree(), "x").fingerprint == before);
    b.write(cpu_root + "/vulnerabilities/spectre_v2", "Vulnerable\n");
    CHECK(read_inventory(b.tree(), "x").fingerprint != before);
}

TEST_CASE("a boot id of another shape is an error") {
    TempTree t;
    CHECK_FALSE(boot_id(t.tree()));
    t.write("/proc/sys/kernel/random/boot_id", "nonsense\n");
    CHECK_FALSE(boot_id(t.tree()));
    CHECK(boot_id(FileTree("/")));
}

TEST_CASE("a hypervisor's flag is a word of its own, and odd bytes don't break the JSON") {
    CHECK(parse_cpuinfo("flags\t: fpu hypervisor lm\n").hypervisor);
    CHECK_FALSE(parse_cpuinfo("flags\t: fpu nohypervisors\n").hypervisor);
    TempTree t;
    write_machine(t);
    t.write("/proc/cmdline", "a=\xff\xfe\n");
    CHECK(read_inventory(t.tree(), "").facts["command_line"] == "a=??");
    CHECK(read_inventory(t.tree(), "", "taskstats").facts["thread_source"] == "taskstats");
}

TEST_CASE("this machine's own inventory names its kernel and is stable") {
    const Inventory first = read_inventory(FileTree("/"), "x"), second = read_inventory(FileTree("/"), "x");
    CHECK(first.facts["kernel_release"] != "unknown");
    CHECK(first.topology);
    CHECK(first.fingerprint == second.fingerprint);
}
