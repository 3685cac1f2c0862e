#include "common/topology/topology.hpp"

#include "common/topology/sysfs_read.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace perfrig {

namespace {

const std::string cpu_root = "/sys/devices/system/cpu";
const std::string node_root = "/sys/devices/system/node";

// "cpu12" -> 12; nothing for "cpufreq" and "cpuidle".
std::optional<int> numbered(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    int id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size() || id < 0) return std::nullopt;
    return id;
}

std::vector<int> numbered_folders(const FileTree& tree, const std::string& folder, std::string_view prefix) {
    std::vector<int> ids;
    const auto names = tree.list(folder);
    if (!names) return ids; // no such folder: nothing in it
    for (const std::string& name : *names)
        if (const auto id = numbered(name, prefix)) ids.push_back(*id);
    std::sort(ids.begin(), ids.end());
    return ids;
}

CpuList as_list(const std::vector<int>& ids) {
    CpuList list;
    for (const int id : ids) list.add(id);
    return list;
}

// Old kernels have no cpu/online: a CPU is online unless its own file says 0 (the boot CPU may lack that file).
Result<CpuList> online_by_folders(const FileTree& tree, const std::vector<int>& folders) {
    CpuList online;
    for (const int id : folders) {
        PERFRIG_TRY(const auto flag, sysfs::number(tree, cpu_root + "/cpu" + std::to_string(id) + "/online"));
        if (flag.value_or(1) != 0) online.add(id);
    }
    return online;
}

Result<void> read_lists(const FileTree& tree, Topology& t) {
    const std::vector<int> folders = numbered_folders(tree, cpu_root, "cpu");
    PERFRIG_TRY(const auto online, sysfs::list(tree, cpu_root + "/online"));
    if (online) {
        t.online = *online;
    } else if (!folders.empty()) {
        PERFRIG_TRY(t.online, online_by_folders(tree, folders));
        t.notes.push_back("this kernel has no list of online CPUs: taken from the cpuN folders");
    }
    if (t.online.empty())
        return fail(ErrorKind::unavailable, "read the CPUs of this machine", tree.real_path(cpu_root),
                    "neither the file 'online' nor a cpuN folder is there", "mount /sys");
    PERFRIG_TRY(const auto present, sysfs::list(tree, cpu_root + "/present"));
    t.present = present ? *present : as_list(folders).either(t.online);
    PERFRIG_TRY(const auto possible, sysfs::list(tree, cpu_root + "/possible"));
    t.possible = possible ? *possible : t.present;
    PERFRIG_TRY(const auto offline, sysfs::list(tree, cpu_root + "/offline"));
    t.offline = offline ? *offline : t.possible.without(t.online);
    PERFRIG_TRY(const auto isolated, sysfs::list(tree, cpu_root + "/isolated"));
    if (isolated) t.isolated = *isolated;
    PERFRIG_TRY(const auto nohz_full, sysfs::list(tree, cpu_root + "/nohz_full"));
    if (nohz_full) t.nohz_full = *nohz_full;
    return {};
}

// Where neither list nor mask is there the result is empty: unknown.
Result<CpuList> list_or_mask(const FileTree& tree, const std::string& list_path, const std::string& mask_path) {
    PERFRIG_TRY(auto list, sysfs::list(tree, list_path));
    if (list) return *std::move(list);
    PERFRIG_TRY(auto mask, sysfs::mask(tree, mask_path));
    return mask ? *std::move(mask) : CpuList{};
}

Result<CpuList> read_l3_group(const FileTree& tree, const std::string& cache) {
    for (const int index : numbered_folders(tree, cache, "index")) {
        const std::string folder = cache + "/index" + std::to_string(index);
        PERFRIG_TRY(const auto level, sysfs::number(tree, folder + "/level"));
        if (level == 3) return list_or_mask(tree, folder + "/shared_cpu_list", folder + "/shared_cpu_map");
    }
    return CpuList{};
}

std::optional<int> known_id(std::optional<std::int64_t> id) { // -1 is the kernel's "unknown"
    if (!id || *id < 0 || *id > INT32_MAX) return std::nullopt;
    return static_cast<int>(*id);
}

Result<CpuTopology> read_cpu(const FileTree& tree, int id) {
    const std::string folder = cpu_root + "/cpu" + std::to_string(id);
    const std::string topology = folder + "/topology";
    CpuTopology cpu;
    cpu.cpu = id;
    PERFRIG_TRY(const auto package, sysfs::number(tree, topology + "/physical_package_id"));
    cpu.package = known_id(package);
    PERFRIG_TRY(const auto core, sysfs::number(tree, topology + "/core_id"));
    cpu.core = known_id(core);
    PERFRIG_TRY(cpu.smt_siblings, list_or_mask(tree, topology + "/core_cpus_list", topology + "/core_cpus"));
    if (cpu.smt_siblings.empty()) { // the older names of the same files (before 5.2)
        PERFRIG_TRY(cpu.smt_siblings,
                    list_or_mask(tree, topology + "/thread_siblings_list", topology + "/thread_siblings"));
    }
    PERFRIG_TRY(cpu.l3_group, read_l3_group(tree, folder + "/cache"));
    PERFRIG_TRY(cpu.max_khz, sysfs::number(tree, folder + "/cpufreq/cpuinfo_max_freq"));
    return cpu;
}

Result<void> read_nodes(const FileTree& tree, Topology& t) {
    PERFRIG_TRY(const auto with_memory, sysfs::list(tree, node_root + "/has_memory"));
    for (const int id : numbered_folders(tree, node_root, "node")) {
        const std::string folder = node_root + "/node" + std::to_string(id);
        MemoryNode node;
        node.node = id;
        PERFRIG_TRY(node.cpus, list_or_mask(tree, folder + "/cpulist", folder + "/cpumap"));
        PERFRIG_TRY(node.memory_bytes, sysfs::node_memory_bytes(tree, folder + "/meminfo"));
        if (!node.memory_bytes && with_memory && !with_memory->contains(id)) node.memory_bytes = 0;
        for (const int cpu : node.cpus)
            if (const auto found = t.cpus.find(cpu); found != t.cpus.end()) found->second.node = id;
        t.nodes.push_back(std::move(node));
    }
    if (t.nodes.empty()) t.notes.push_back("this kernel shows no memory nodes");
    return {};
}

} // namespace

Result<Topology> read_topology(const FileTree& tree) {
    Topology t;
    PERFRIG_CHECK(read_lists(tree, t));
    for (const int id : t.online) {
        PERFRIG_TRY(t.cpus[id], read_cpu(tree, id));
    }
    PERFRIG_CHECK(read_nodes(tree, t));
    const auto silent =
        std::count_if(t.cpus.begin(), t.cpus.end(), [](const auto& c) { return c.second.smt_siblings.empty(); });
    if (silent > 0)
        t.notes.push_back(std::to_string(silent) + " CPUs don't say which hardware threads share their core");
    return t;
}

NodeList Topology::memory_nodes() const {
    NodeList list;
    for (const MemoryNode& node : nodes)
        if (node.memory_bytes != 0u) list.add(node.node);
    return list;
}

std::size_t Topology::cores() const {
    std::set<std::string> cores;
    for (const auto& [id, cpu] : cpus) // a CPU without a known sibling is a core of its own
        cores.insert(cpu.smt_siblings.empty() ? std::to_string(id) : cpu.smt_siblings.both(online).text());
    return cores.size();
}

Json to_json(const Topology& t) {
    const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
    Json out = {{"possible", t.possible.text()},
                {"present", t.present.text()},
                {"online", t.online.text()},
                {"offline", t.offline.text()},
                {"isolated", t.isolated.text()},
                {"nohz_full", t.nohz_full.text()},
                {"cores", t.cores()},
                {"cpus", Json::array()},
                {"nodes", Json::array()},
                {"notes", t.notes}};
    for (const auto& [id, cpu] : t.cpus)
        out["cpus"].push_back({{"cpu", id},
                               {"package", or_null(cpu.package)},
                               {"core", or_null(cpu.core)},
                               {"node", or_null(cpu.node)},
                               {"smt_siblings", cpu.smt_siblings.text()},
                               {"l3_group", cpu.l3_group.text()},
                               {"max_khz", or_null(cpu.max_khz)}});
    for (const MemoryNode& node : t.nodes)
        out["nodes"].push_back(
            {{"node", node.node}, {"cpus", node.cpus.text()}, {"memory_bytes", or_null(node.memory_bytes)}});
    return out;
}

} // namespace perfrig
