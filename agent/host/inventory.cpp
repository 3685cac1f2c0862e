#include "agent/host/inventory.hpp"

#include "common/base/hash.hpp"

#include <algorithm>
#include <set>

namespace perfrig {

namespace {

const std::string cpu_root = "/sys/devices/system/cpu";

// Collects facts, raw strings and the reasons for what is unknown.
class Gathering {
  public:
    explicit Gathering(const FileTree& tree) : tree_(tree) {}

    void fact(const std::string& name, Json value) { facts_[name] = std::move(value); }
    void unknown(const std::string& name, const std::string& why) {
        facts_[name] = "unknown";
        facts_["unknown"][name] = why;
    }
    template <class T>
    void fact_or_unknown(const std::string& name, const std::optional<T>& value, const std::string& why) {
        if (value)
            fact(name, *value);
        else
            unknown(name, why);
    }
    // A fact that is one line of one file; the raw string is the fact.
    void line(const std::string& name, const std::string& path) {
        const auto text = tree_.read_line(path);
        if (text)
            fact(name, printable(*text));
        else
            unknown(name, reason(text.error(), path));
    }
    // The whole text, kept raw under `name`; nothing (and an unknown fact) where it can't be read.
    std::optional<std::string> text(const std::string& fact_name, const std::string& path) {
        auto read = tree_.read(path);
        if (read) return *std::move(read);
        unknown(fact_name, reason(read.error(), path));
        return std::nullopt;
    }
    void raw(const std::string& name, Json value) { raw_[name] = std::move(value); }
    bool exists(const std::string& path) const { return tree_.exists(path); }
    const FileTree& tree() const { return tree_; }

    // Why a file gave nothing, without the root of the tree: the same on every machine.
    static std::string reason(const Error& e, const std::string& path) { return path + ": " + e.why; }
    // Kernel strings are ASCII, but nothing promises it, and JSON must be UTF-8.
    static std::string printable(std::string text) {
        for (char& c : text)
            if (static_cast<unsigned char>(c) >= 0x80 ||
                (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t'))
                c = '?';
        return text;
    }

    Json take_facts() {
        if (!facts_.contains("unknown")) facts_["unknown"] = Json::object();
        return std::move(facts_);
    }
    Json take_raw() { return std::move(raw_); }

  private:
    const FileTree& tree_;
    Json facts_ = Json::object();
    Json raw_ = Json::object();
};

void read_cpu(Gathering& g) {
    const auto text = g.text("cpu_model", "/proc/cpuinfo");
    if (!text) {
        g.unknown("cpu_microcode", "/proc/cpuinfo can't be read");
        return;
    }
    const CpuIdentity id = parse_cpuinfo(Gathering::printable(*text));
    const auto missing = [](const char* what) { return std::string("/proc/cpuinfo has no ") + what; };
    g.fact_or_unknown("cpu_vendor", id.vendor, missing("vendor"));
    g.fact_or_unknown("cpu_model", id.model, missing("model name"));
    g.fact_or_unknown("cpu_family", id.family, missing("family"));
    g.fact_or_unknown("cpu_model_number", id.model_number, missing("model number"));
    g.fact_or_unknown("cpu_stepping", id.stepping, missing("stepping"));
    g.fact_or_unknown("cpu_microcode", id.microcode, missing("microcode revision"));
    if (id.hypervisor)
        g.fact("virtualisation", "virtual: the CPU says that a hypervisor runs it");
    else if (g.exists("/sys/hypervisor/type"))
        g.line("virtualisation", "/sys/hypervisor/type");
    else
        g.fact("virtualisation", "none seen");
}

std::optional<Topology> read_topology_facts(Gathering& g) {
    auto topology = read_topology(g.tree());
    if (!topology) {
        g.unknown("topology", topology.error().why);
        return std::nullopt;
    }
    const Topology& t = *topology;
    std::set<int> packages;
    std::set<std::string> l3_groups;
    for (const auto& [id, cpu] : t.cpus) {
        if (cpu.package) packages.insert(*cpu.package);
        if (!cpu.l3_group.empty()) l3_groups.insert(cpu.l3_group.text());
    }
    g.fact("topology", {{"online", t.online.text()},
                        {"offline", t.offline.text()},
                        {"isolated", t.isolated.text()},
                        {"nohz_full", t.nohz_full.text()},
                        {"cpus_online", t.online.size()},
                        {"cores_online", t.cores()},
                        {"packages", packages.empty() ? Json("unknown") : Json(packages.size())},
                        {"l3_groups", l3_groups.empty() ? Json("unknown") : Json(l3_groups)},
                        {"memory_nodes", t.memory_nodes().text()}});
    g.raw("topology", to_json(t));
    return *std::move(topology);
}

void read_kernel(Gathering& g) {
    g.line("kernel_release", "/proc/sys/kernel/osrelease");
    g.line("kernel_version", "/proc/sys/kernel/version");
    g.line("kernel_type", "/proc/sys/kernel/ostype");
    if (const auto line = g.text("command_line", "/proc/cmdline"))
        g.fact("command_line", Gathering::printable(shareable_command_line(*line)));
}

void read_memory(Gathering& g) {
    const auto text = g.text("memory_total_bytes", "/proc/meminfo");
    if (!text) return;
    const auto bytes = parse_memory_total_bytes(*text);
    if (bytes)
        g.fact("memory_total_bytes", *bytes);
    else
        g.unknown("memory_total_bytes", bytes.error().why);
    g.line("transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled");
}

// The wording drifts between kernels: the strings are facts as they stand, and are read elsewhere.
void read_mitigations(Gathering& g) {
    const std::string folder = cpu_root + "/vulnerabilities";
    const auto names = g.tree().list(folder);
    if (!names) return g.unknown("vulnerabilities", Gathering::reason(names.error(), folder));
    Json all = Json::object();
    for (const std::string& name : *names) {
        const auto text = g.tree().read_line(folder + "/" + name);
        all[name] = text ? Gathering::printable(*text) : "unknown";
    }
    g.fact("vulnerabilities", std::move(all));
}

void read_speculation(Gathering& g) {
    const auto text = g.text("speculation", "/proc/self/status");
    if (!text) return;
    const auto lines = speculation_status_lines(Gathering::printable(*text));
    if (lines.empty())
        g.unknown("speculation", "/proc/self/status has no lines about it: unknown, not off");
    else
        g.fact("speculation", lines);
}

void read_os(Gathering& g) {
    std::string path = "/etc/os-release";
    if (!g.exists(path)) path = "/usr/lib/os-release";
    const auto text = g.text("os", path);
    if (!text) return;
    Json os = Json::object();
    for (const auto& [key, value] : parse_os_release(*text))
        if (key == "ID" || key == "VERSION_ID" || key == "PRETTY_NAME") os[key] = Gathering::printable(value);
    g.fact("os", std::move(os));
}

// The same value on all CPUs is one string; else each value with its CPUs.
void read_per_cpu(Gathering& g, const std::string& name, const std::string& file,
                  const std::optional<Topology>& topology) {
    std::map<std::string, CpuList> by_value;
    if (topology)
        for (const int cpu : topology->online)
            if (const auto text = g.tree().read_line(cpu_root + "/cpu" + std::to_string(cpu) + file))
                by_value[*text].add(cpu);
    if (by_value.empty()) return g.unknown(name, "no CPU has " + cpu_root + "/cpuN" + file);
    if (by_value.size() == 1) return g.fact(name, Gathering::printable(by_value.begin()->first));
    Json out = Json::object();
    for (const auto& [value, cpus] : by_value) out[Gathering::printable(value)] = cpus.text();
    g.fact(name, std::move(out));
}

// Turbo has two switches that mean opposite things.
void read_turbo(Gathering& g) {
    const auto no_turbo = g.tree().read_line(cpu_root + "/intel_pstate/no_turbo");
    const auto boost = g.tree().read_line(cpu_root + "/cpufreq/boost");
    if (no_turbo && (*no_turbo == "0" || *no_turbo == "1"))
        g.fact("turbo", *no_turbo == "0");
    else if (boost && (*boost == "0" || *boost == "1"))
        g.fact("turbo", *boost == "1");
    else
        g.unknown("turbo", "neither intel_pstate/no_turbo nor cpufreq/boost says");
}

} // namespace

Result<std::string> boot_id(const FileTree& tree) {
    const std::string path = "/proc/sys/kernel/random/boot_id";
    PERFRIG_TRY(std::string id, tree.read_line(path));
    const bool good = id.size() == 36 && id.find_first_not_of("0123456789abcdef-") == std::string::npos;
    if (!good)
        return fail(ErrorKind::bad_input, "read the boot id", tree.real_path(path),
                    "it is not a UUID: '" + Gathering::printable(id.substr(0, 40)) + "'");
    return id;
}

Inventory read_inventory(const FileTree& tree, const std::string& cgroup_summary, const std::string& thread_source) {
    Gathering g(tree);
    Inventory out;
    read_cpu(g);
    out.topology = read_topology_facts(g);
    read_kernel(g);
    read_memory(g);
    read_mitigations(g);
    read_speculation(g);
    read_os(g);
    g.line("smt_control", cpu_root + "/smt/control");
    g.line("smt_active", cpu_root + "/smt/active");
    g.line("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    read_per_cpu(g, "governor", "/cpufreq/scaling_governor", out.topology);
    read_per_cpu(g, "frequency_driver", "/cpufreq/scaling_driver", out.topology);
    read_per_cpu(g, "frequency_limit_khz", "/cpufreq/scaling_max_freq", out.topology);
    read_turbo(g);
    if (cgroup_summary.empty())
        g.unknown("cgroups", "not looked at");
    else
        g.fact("cgroups", Gathering::printable(cgroup_summary));
    g.fact("thread_source", thread_source);

    if (auto id = boot_id(tree))
        out.boot_id = *std::move(id);
    else
        g.unknown("boot_id", id.error().why);
    out.facts = g.take_facts();
    out.raw = g.take_raw();
    out.fingerprint = sha256_hex(canonical_json(out.facts));
    return out;
}

} // namespace perfrig
