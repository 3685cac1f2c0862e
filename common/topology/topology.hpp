// The CPUs, cores, caches and memory nodes of a machine, read from sysfs. Placement decides with it, the inventory
// prints it. Everything that a kernel may leave out is optional: absent means "the kernel doesn't say", never zero.
//
// Sources: Documentation/admin-guide/cputopology.rst,
// Documentation/ABI/{stable,testing}/sysfs-devices-{system-cpu,node} of Linux. Two rules that naive readers break: SMT
// siblings come from the sibling lists, never from equal core ids (core ids repeat per package, cluster or book); a
// package id of -1 means unknown.
#pragma once

#include "common/base/cpu_list.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

using NodeList = CpuList; // memory node ids are printed in the same list format

struct CpuTopology {
    int cpu = 0;
    std::optional<int> package;          // physical_package_id
    std::optional<int> core;             // core_id: unique within a package at best
    std::optional<int> node;             // the memory node that lists this CPU
    CpuList smt_siblings;                // hardware threads of the same core, itself among them; empty where unknown
    CpuList l3_group;                    // CPUs behind the same level-3 cache, itself among them; empty where unknown
    std::optional<std::int64_t> max_khz; // cpuinfo_max_freq
};

struct MemoryNode {
    int node = 0;
    CpuList cpus;                              // empty: memory without CPUs
    std::optional<std::uint64_t> memory_bytes; // MemTotal of the node; 0: CPUs without memory
};

struct Topology {
    CpuList possible, present, online, offline;
    CpuList isolated;                // taken out of the scheduler's domains (isolcpus)
    CpuList nohz_full;               // may run without the tick
    std::map<int, CpuTopology> cpus; // online CPUs
    std::vector<MemoryNode> nodes;   // by id; empty where the kernel shows none (not NUMA-aware)
    std::vector<std::string> notes;  // what had to be guessed or was missing, in plain words

    // Nodes that have memory, or of which the kernel doesn't say how much: what a process can be bound to.
    NodeList memory_nodes() const;
    std::size_t cores() const; // physical cores online, counted by sibling sets
};

// Fails only where not even the online CPUs can be found out, or where sysfs holds something that isn't understood
// (the path is named). CPUs come from cpu/online; old kernels without that file: from the cpuN folders.
Result<Topology> read_topology(const FileTree& tree);

Json to_json(const Topology& topology);

} // namespace perfrig
