// The head of an experiment file (name, machine, factors, order ...), and the whole of the checks in their order.
#include "common/base/hash.hpp"
#include "common/experiment/document.hpp"
#include "common/experiment/plan.hpp"

#include <algorithm>

namespace perfrig {

namespace {

constexpr std::uint64_t most_seed = (1ULL << 53) - 1; // exact in JSON
constexpr int most_factors = 32;
constexpr std::size_t longest_level = 4096;
constexpr std::size_t most_faults_told = 500;

bool only(std::string_view text, std::string_view allowed) {
    return text.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_experiment_name(std::string_view text) {
    return is_inner_path(text) && text.size() <= 200 && only(text, "abcdefghijklmnopqrstuvwxyz0123456789._-/");
}

bool is_factor_name(std::string_view text) {
    return !text.empty() && text.size() <= 63 && text[0] >= 'a' && text[0] <= 'z' &&
           only(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

Fault fault_at(YamlMark mark, std::string path, std::string message, std::string remedy) {
    return {mark.line, mark.column, std::move(path), std::move(message), std::move(remedy)};
}

MachineWish read_machine(YamlReader& in, std::vector<Fault>& faults) {
    MachineWish wish;
    const YamlNode* node = in.node("machine");
    if (!node || (node->is_scalar() && node->text == "any")) return wish;
    if (node->is_map()) {
        YamlReader machine(*node, "machine", faults);
        wish.labels = machine.text_map("labels");
        machine.finish();
        if (wish.labels.empty() && !machine.has("labels"))
            machine.fault_at("labels", "machine names no labels", "write any, a name, or {labels: {KEY: VALUE}}");
        return wish;
    }
    wish.name = node->text;
    if (!node->is_scalar() || wish.name.empty() || wish.name.size() > 253 ||
        !only(wish.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"))
        faults.push_back(fault_at(node->mark, "machine", "machine is no name of a machine",
                                  "write any, a name, or {labels: {KEY: VALUE}}"));
    return wish;
}

void read_levels(const YamlEntry& entry, Factor& factor, std::vector<Fault>& faults) {
    const std::string path = "factors." + entry.key;
    const YamlNode& list = entry.value;
    if (!list.is_list() || list.items.empty()) {
        faults.push_back(fault_at(list.mark, path, path + " must be a list of levels", "such as [1, 2, 5]"));
        return;
    }
    std::map<std::string_view, std::size_t> seen;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        const YamlNode& item = list.items[i];
        const std::string where = path + "." + std::to_string(i);
        if (!item.is_scalar()) {
            faults.push_back(fault_at(item.mark, where, where + " must be a single value",
                                      item.is_null() ? "write it in quotes" : ""));
            continue;
        }
        if (item.text.size() > longest_level)
            faults.push_back(fault_at(item.mark, where, where + " is longer than 4096 bytes", "put it into files"));
        if (item.text.find("${") != std::string::npos)
            faults.push_back(fault_at(item.mark, where, where + ": a level can't hold ${", "write it out"));
        if (const auto [other, added] = seen.emplace(item.text, i); !added)
            faults.push_back(fault_at(
                item.mark, where, "the level '" + item.text.substr(0, 60) + "' is given twice in " + path, "keep one"));
        else
            factor.levels.push_back(item.text);
    }
}

std::vector<Factor> read_factors(YamlReader& in, std::vector<Fault>& faults) {
    std::vector<Factor> factors;
    YamlReader map = in.map("factors");
    for (const YamlEntry& entry : map.self().entries) {
        Factor factor{entry.key, {}};
        if (!is_factor_name(entry.key))
            faults.push_back(fault_at(entry.key_mark, "factors." + entry.key.substr(0, 60),
                                      "'" + entry.key.substr(0, 60) + "' is no name of a factor",
                                      "lower-case letters, digits and _, from a letter"));
        read_levels(entry, factor, faults);
        if (factor.levels.empty()) factor.levels.emplace_back(); // so that what follows has something to look at
        factors.push_back(std::move(factor));
    }
    if (factors.size() > most_factors) {
        map.fault(map.self(), "factors", "more than 32 factors", "take some out");
        factors.resize(most_factors);
    }
    return factors;
}

std::vector<std::string> read_ports(YamlReader& in, std::vector<Fault>& faults) {
    std::vector<std::string> ports = in.texts("ports");
    const YamlNode* list = in.node("ports");
    constexpr std::size_t most = 100;
    if (ports.size() > most) { // before they are compared with each other: that takes the square of their count
        in.fault_at("ports", "more than 100 ports", "take some out");
        ports.resize(most);
        return ports;
    }
    for (std::size_t i = 0; i < ports.size() && list->items.size() == ports.size(); ++i) {
        const YamlMark at = list->items[i].mark;
        const std::string where = "ports." + std::to_string(i);
        if (!is_name(ports[i]))
            faults.push_back(fault_at(at, where, "'" + ports[i].substr(0, 60) + "' is no name of a port",
                                      "a name, not a number: the agent picks a free one"));
        else if (std::find(ports.begin(), ports.begin() + static_cast<std::ptrdiff_t>(i), ports[i]) !=
                 ports.begin() + static_cast<std::ptrdiff_t>(i))
            faults.push_back(fault_at(at, where, "the port '" + ports[i] + "' is named twice", "keep one"));
    }
    return ports;
}

void read_files(YamlReader& in, std::vector<Fault>& faults) {
    YamlReader files = in.map("files");
    std::set<std::string> names;
    for (const YamlEntry& entry : files.self().entries) {
        const std::string where = files.path_of(entry.key);
        if (!is_inner_path(entry.key))
            faults.push_back(fault_at(entry.key_mark, where,
                                      "'" + entry.key.substr(0, 60) + "' in files must lie within the run's directory",
                                      "a relative path without .."));
        names.insert(entry.key);
    }
    for (const YamlEntry& entry : files.self().entries)
        for (std::size_t slash = 0; (slash = entry.key.find('/', slash)) != std::string::npos; ++slash)
            if (names.contains(entry.key.substr(0, slash)))
                faults.push_back(fault_at(entry.key_mark, files.path_of(entry.key),
                                          "'" + entry.key.substr(0, slash) + "' in files is a file and a directory",
                                          "rename one"));
}

// Names of services and tools: good, and no two alike, since they name processes.
void read_process_names(YamlReader& in, std::vector<Fault>& faults) {
    std::set<std::string> names;
    for (const char* kind : {"services", "tools"}) {
        YamlReader map = in.map(kind);
        for (const YamlEntry& entry : map.self().entries) {
            const std::string where = map.path_of(entry.key);
            if (!is_name(entry.key))
                faults.push_back(fault_at(entry.key_mark, where,
                                          "'" + entry.key.substr(0, 60) + "' is no name for one of the " + kind,
                                          "lower-case letters, digits, _ and -, from a letter"));
            if (!names.insert(entry.key).second)
                faults.push_back(
                    fault_at(entry.key_mark, where, "'" + entry.key + "' names a service and a tool", "rename one"));
        }
        if (map.self().entries.size() > 100)
            map.fault(map.self(), kind, std::string("more than 100 ") + kind, "take some out");
    }
    if (names.empty() && in.self().is_map())
        in.fault(in.self(), "", "neither services nor tools: there is nothing to run", "add one");
}

void read_seed(YamlReader& in, Experiment& experiment) {
    if (in.has("seed"))
        experiment.seed = static_cast<std::uint64_t>(in.integer("seed", 0, 0, static_cast<std::int64_t>(most_seed)));
    in.know("seed");
}

Experiment read_head(YamlReader& in, std::vector<std::string>& ports, std::vector<Fault>& faults) {
    Experiment out;
    in.know("perfrig");
    out.name = in.text("name");
    if (!out.name.empty() && !is_experiment_name(out.name))
        in.fault_at("name", "'" + out.name.substr(0, 60) + "' is no name of an experiment",
                    "lower-case letters, digits, '.', '_' and '-', in parts joined by '/', such as web/scaling");
    out.description = in.text("description", "");
    out.machine = read_machine(in, faults);
    out.factors = read_factors(in, faults);
    out.replicates = static_cast<int>(in.integer("replicates", 1, 1, 1000));
    const std::string order = in.one_of("order", "interleaved", {"interleaved", "random", "as-written"});
    out.order = order == "random"       ? RunOrder::random
                : order == "as-written" ? RunOrder::as_written
                                        : RunOrder::interleaved;
    read_seed(in, out);
    ports = read_ports(in, faults);
    read_files(in, faults);
    read_process_names(in, faults);
    for (const char* key : {"kernel_args", "roles", "build", "build_role", "build_within", "phases"})
        in.know(key); // sections
    in.finish();
    return out;
}

void check_size(YamlReader& in, const Experiment& experiment) {
    const Limits limits;
    const std::uint64_t cells = Combinations(experiment.factors, every_index(experiment.factors)).size();
    const std::string count = cells == UINT64_MAX ? "too many to count" : std::to_string(cells);
    if (cells > limits.most_cells) {
        in.fault_at("factors", "the factors make " + count + " cells", "at most " + std::to_string(limits.most_cells));
    } else if (cells * static_cast<std::uint64_t>(experiment.replicates) > limits.most_runs) {
        in.fault_at("replicates",
                    count + " cells in " + std::to_string(experiment.replicates) + " replicates are too many runs",
                    "at most " + std::to_string(limits.most_runs));
    }
}

// The keys and the values of {secret: TEXT} in every environment: for hiding them in the definition.
void collect_secrets(const YamlNode& node, bool environment, std::set<std::string>& out) {
    for (const YamlEntry& entry : node.entries) {
        if (environment && entry.value.is_map())
            if (const YamlNode* secret = entry.value.find("secret");
                secret && secret->text.size() >= least_secret_bytes)
                out.insert(secret->text);
        collect_secrets(entry.value, entry.key == "environment", out);
    }
    for (const YamlNode& item : node.items) collect_secrets(item, false, out);
}

// Whether this is a file that the program can judge at all.
bool known_version(const YamlNode& tree, std::vector<Fault>& faults) {
    if (!tree.is_map()) {
        faults.push_back(fault_at(tree.mark, "", tree.is_null() ? "the file is empty" : "an experiment is a map",
                                  "begin with 'perfrig: 1' and 'name: ...'"));
        return false;
    }
    const YamlNode* version = tree.find("perfrig");
    if (version && version->is_scalar() && version->text == "1") return true;
    if (!version)
        faults.push_back(fault_at(tree.mark, "perfrig", "the version of the language is missing",
                                  "begin the file with 'perfrig: 1'"));
    else
        faults.push_back(
            fault_at(version->mark, "perfrig", "only version 1 of the language is known here", "write perfrig: 1"));
    return !version; // without a version the rest may still be read as version 1
}

} // namespace

std::string_view to_string(RunOrder order) {
    switch (order) {
    case RunOrder::interleaved: return "interleaved";
    case RunOrder::random: return "random";
    case RunOrder::as_written: return "as-written";
    }
    return "";
}

ParseOutcome parse_experiment(std::string_view text, const std::vector<std::string>& overrides) {
    YamlOutcome yaml = parse_yaml(text);
    ParseOutcome out;
    std::vector<Fault>& faults = out.faults = std::move(yaml.faults);
    if (!yaml.tree) return out;
    const std::shared_ptr<YamlNode> tree = std::make_shared<YamlNode>(std::move(*yaml.tree));
    if (tree->is_map()) {
        std::vector<Fault> refused = apply_overrides(*tree, overrides, {"replicates", "order", "seed", "phases."});
        faults.insert(faults.end(), refused.begin(), refused.end());
    }
    if (known_version(*tree, faults)) {
        YamlReader in(*tree, "", faults);
        std::vector<std::string> ports;
        Experiment experiment = read_head(in, ports, faults);
        check_size(in, experiment);
        check_references(*tree, experiment.factors, ports, faults);
        check_sections(*tree, experiment.factors, faults);
        if (faults.empty()) check_distinct(*tree, experiment.factors, faults);
        const std::string written = to_yaml(*tree);
        if (!overrides.empty() && written.size() > YamlLimits().most_bytes)
            faults.push_back(
                {0, 0, {}, "with the overrides written in, the file has more than 1 MiB", "make it smaller"});
        if (faults.empty()) {
            std::set<std::string> secrets;
            collect_secrets(*tree, false, secrets);
            experiment.secrets.assign(secrets.begin(), secrets.end());
            experiment.definition = overrides.empty() ? std::string(text) : written;
            experiment.definition_sha256 = sha256_hex(redact(written, experiment.secrets));
            experiment.tree = tree;
            out.experiment = std::move(experiment);
        }
    }
    faults = in_order(std::move(faults));
    if (faults.size() > most_faults_told) {
        const std::string rest = std::to_string(faults.size() - most_faults_told);
        faults.resize(most_faults_told);
        faults.push_back({0, 0, {}, "and " + rest + " more faults", "mend these first"});
    }
    return out;
}

} // namespace perfrig
