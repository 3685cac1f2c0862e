// What this machine is at this moment: the environment behind every number. Facts are typed values, or the word
// "unknown" with the reason beside it under "unknown"; the strings that the kernel printed are kept in `raw`, since
// wording drifts between kernels. The fingerprint is the hash of the facts: two runs with equal fingerprints ran in
// the same environment as far as perfrig can see.
//
// What identifies a machine or its owner stays out: serial numbers, MAC and IP addresses, host names.
#pragma once

#include "common/base/file_tree.hpp"
#include "common/base/json.hpp"
#include "common/topology/topology.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace perfrig {

struct Inventory {
    std::string boot_id;              // not a fact: it changes at every boot
    std::optional<Topology> topology; // none where sysfs can't be understood (facts say why)
    Json facts;
    Json raw;
    std::string fingerprint; // SHA-256 of the canonical text of `facts`, 64 hex digits
};

// Never fails as a whole: what can't be read is unknown, with the reason. `cgroup_summary` is what the caller found
// out about control groups ("v1 cpuset, freezer; v2 without controllers"), `thread_source` where the collectors read
// the switches of threads ("taskstats" or "proc").
Inventory read_inventory(const FileTree& tree, const std::string& cgroup_summary,
                         const std::string& thread_source = "proc");

// /proc/sys/kernel/random/boot_id: 36 characters, changes at every boot. An error where it has another shape.
Result<std::string> boot_id(const FileTree& tree);

// The pure readers behind it. Each takes the text of one file.
struct CpuIdentity {
    std::optional<std::string> vendor, model, microcode;
    std::optional<std::int64_t> family, model_number, stepping;
    bool hypervisor = false; // the flag that x86 sets under a hypervisor
};
CpuIdentity parse_cpuinfo(std::string_view text); // the first processor that says something
Result<std::uint64_t> parse_memory_total_bytes(std::string_view meminfo);
std::map<std::string, std::string>
speculation_status_lines(std::string_view status); // "Speculation_Store_Bypass" -> "thread vulnerable"
std::map<std::string, std::string> parse_os_release(std::string_view text); // quotes taken off
// The command line without what names hosts, networks or one boot (ip=, BOOTIF=, hostnames, perfrig.boot=): their
// values are replaced, except perfrig.boot, which is dropped.
std::string shareable_command_line(std::string_view line);

} // namespace perfrig
