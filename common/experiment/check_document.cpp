#include "common/experiment/document.hpp"

#include "common/base/hash.hpp"
#include "common/experiment/references.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace perfrig {

namespace {

// The bound on the work of check_sections, in bytes of tree read; about a second.
constexpr std::uint64_t most_work = 400'000'000;
constexpr std::uint64_t most_combinations = 10'000; // of one section
constexpr std::size_t most_faults = 1000;

std::string described(const Levels& levels) {
    std::string out;
    for (const auto& [factor, level] : levels)
        out +=
            (out.empty() ? "with " : ", ") + factor + "=" + (level.size() <= 40 ? level : level.substr(0, 37) + "...");
    return out;
}

// What a fault's place depends on: the factors that the value there mentions.
using Mentions = std::map<std::pair<int, int>, std::set<std::string>>;

void collect_mentions(const YamlNode& node, Mentions& out) {
    if (node.is_scalar() && node.text.find("${") != std::string::npos)
        for (Reference& r : references_in(node.text)) out[{node.mark.line, node.mark.column}].insert(std::move(r.name));
    for (const YamlNode& item : node.items) collect_mentions(item, out);
    for (const YamlEntry& entry : node.entries) collect_mentions(entry.value, out);
}

// A fault as it came with one or more combinations of levels.
struct Seen {
    std::uint64_t times = 0;
    Levels first;     // the levels of the first time
    Levels constant;  // those of them that all times had
    Levels mentioned; // those that the faulty value itself mentions: part of what makes this fault this one
};

Levels mentioned_at(const Fault& fault, const Levels& levels, const Mentions& mentions) {
    const auto found = mentions.find({fault.line, fault.column});
    Levels out = levels;
    std::erase_if(out, [&](const auto& l) { return found == mentions.end() || !found->second.contains(l.first); });
    return out;
}

// Says with which levels a fault comes, unless it comes with all of them.
void explain(Fault& fault, const Seen& seen, std::uint64_t combinations, const std::vector<Factor>& factors) {
    Levels levels = seen.constant;
    for (const Factor& factor : factors) // a factor with one level is always constant, and tells nothing
        if (factor.levels.size() == 1 && !seen.mentioned.contains(factor.name)) levels.erase(factor.name);
    if (levels.empty() && seen.times < combinations) levels = seen.first;
    if (!levels.empty()) fault.message += ", " + described(levels);
}

struct FaultOrder {
    using Key = std::pair<Fault, Levels>;
    bool operator()(const Key& a, const Key& b) const {
        const auto parts = [](const Key& k) {
            return std::tie(k.first.line, k.first.column, k.first.path, k.first.message, k.first.remedy, k.second);
        };
        return parts(a) < parts(b);
    }
};

struct NameRules {
    std::vector<std::string> factors;
    std::vector<std::string> all; // factors, and what the resolved run offers
    std::vector<Fault>& faults;
    std::set<std::string> used;
};

void check_name(const YamlNode& node, const std::string& path, const Reference& reference, bool factors_only,
                NameRules& rules) {
    const YamlMark at = mark_within(node, reference.at);
    const auto fault = [&](std::string message, std::string remedy) {
        rules.faults.push_back({at.line, at.column, path, std::move(message), std::move(remedy)});
    };
    if (!reference.closed) return fault("'${' in " + path + " is never closed", "write $${ for a plain ${");
    const std::vector<std::string>& known = factors_only ? rules.factors : rules.all;
    if (std::find(known.begin(), known.end(), reference.name) != known.end()) {
        rules.used.insert(reference.name);
        return;
    }
    const std::string shown = "${" + reference.name.substr(0, 60) + "}";
    if (factors_only && std::find(rules.all.begin(), rules.all.end(), reference.name) != rules.all.end())
        return fault(shown + " can't be used in " + path, "only factors can");
    std::string near = nearest_word(reference.name, known);
    std::string remedy = "name a factor, or write $${ for a plain ${";
    if (reference.name.starts_with("port.") && !near.starts_with("port.")) {
        near.clear();
        remedy = "add '" + reference.name.substr(5, 60) + "' to ports";
    }
    fault("unknown name " + shown + " in " + path, near.empty() ? remedy : "did you mean '${" + near + "}'?");
}

void check_names(const YamlNode& node, const std::string& path, bool factors_only, NameRules& rules) {
    if (rules.faults.size() >= most_faults) return;
    if (node.is_scalar() && node.text.find("${") != std::string::npos)
        for (const Reference& reference : references_in(node.text))
            check_name(node, path, reference, factors_only, rules);
    for (std::size_t i = 0; i < node.items.size(); ++i)
        check_names(node.items[i], path + "." + std::to_string(i), factors_only, rules);
    for (const YamlEntry& entry : node.entries) {
        const std::string inner = path.empty() ? entry.key : path + "." + entry.key;
        if (entry.key.find("${") != std::string::npos)
            rules.faults.push_back(
                {entry.key_mark.line, entry.key_mark.column, inner, "a key can't hold ${...}", "only values can"});
        const bool secret = entry.key == "secret" && path.find(".environment.") != std::string::npos;
        if (secret && entry.value.is_scalar() && !references_in(entry.value.text).empty())
            rules.faults.push_back(
                {entry.value.mark.line, entry.value.mark.column, inner, "a secret can't hold ${...}", "write it out"});
        else
            check_names(entry.value, inner, factors_only, rules);
    }
}

} // namespace

void check_references(const YamlNode& document, const std::vector<Factor>& factors,
                      const std::vector<std::string>& ports, std::vector<Fault>& faults) {
    NameRules rules{{}, {}, faults, {}};
    for (const Factor& factor : factors) rules.factors.push_back(factor.name);
    rules.all = rules.factors;
    for (const char* name : {"run.directory", "measure.seconds", "warm_up.seconds"}) rules.all.emplace_back(name);
    for (const std::string& port : ports) rules.all.push_back("port." + port);
    static const std::set<std::string, std::less<>> anything{"files", "build", "services", "tools"};
    static const std::set<std::string, std::less<>> factors_alone{"kernel_args", "roles", "phases", "build_role",
                                                                  "build_within"};
    for (const YamlEntry& entry : document.entries) {
        if (anything.contains(entry.key))
            check_names(entry.value, entry.key, false, rules);
        else if (factors_alone.contains(entry.key))
            check_names(entry.value, entry.key, true, rules);
        else if (entry.key != "description" && !names_in(entry.value).empty())
            faults.push_back({entry.value.mark.line, entry.value.mark.column, entry.key,
                              "${...} can't be used in " + entry.key, "write it out"});
    }
    const YamlNode* node = document.find("factors");
    for (const Factor& factor : factors) {
        if (rules.used.contains(factor.name)) continue;
        const YamlMark at = node && node->entry(factor.name) ? node->entry(factor.name)->key_mark : YamlMark{};
        faults.push_back({at.line, at.column, "factors." + factor.name, "nothing uses the factor '" + factor.name + "'",
                          "write ${" + factor.name + "} where it belongs, or take it out"});
    }
}

void check_sections(const YamlNode& document, const std::vector<Factor>& factors, std::vector<Fault>& faults) {
    Mentions mentions;
    collect_mentions(document, mentions);
    std::uint64_t work = 0;
    for (const Section& section : sections_of(document, factors)) {
        const Combinations combinations(factors, section.factors);
        std::map<FaultOrder::Key, Seen, FaultOrder> seen;
        std::uint64_t read = 0;
        for (; read < std::min(combinations.size(), most_combinations); ++read) {
            if (read > 0 && work > most_work) break;
            work += section.weight;
            const Levels levels = combinations.at(read);
            Findings found;
            Parts parts;
            section.read(levels, found, parts);
            for (Fault& fault : in_order(std::move(found.faults))) {
                Levels mentioned = mentioned_at(fault, levels, mentions);
                Seen& entry = seen[{std::move(fault), mentioned}];
                if (entry.times++ == 0)
                    entry = {1, levels, levels, std::move(mentioned)};
                else
                    std::erase_if(entry.constant, [&](const auto& l) { return levels.at(l.first) != l.second; });
            }
            if (seen.size() >= most_faults) break;
        }
        for (const auto& [key, entry] : seen) {
            Fault said = key.first;
            explain(said, entry, read, factors);
            faults.push_back(std::move(said));
        }
        if (faults.size() >= most_faults) return;
    }
}

namespace {

// For a section whose combinations may read alike: which combination reads like which.
struct Likeness {
    Combinations combinations;
    std::vector<std::uint64_t> first; // combination -> the first one that reads the same; empty: all differ
};

std::string fingerprint(const Section& section, const Levels& levels) {
    Findings found;
    Parts parts;
    section.read(levels, found, parts);
    Json json = to_json(parts.run);
    for (const auto& [role, recipe] : parts.roles) json["recipes"][role] = Json::array({recipe.from, recipe.cpus});
    return sha256_hex(canonical_json(json));
}

std::vector<Likeness> likenesses(const YamlNode& document, const std::vector<Factor>& factors) {
    std::vector<Likeness> out;
    bool some_alike = false;
    std::uint64_t work = 0;
    for (const Section& section : sections_of(document, factors)) {
        if (section.factors.empty() || !section.yields) continue;
        Combinations combinations(factors, section.factors);
        std::vector<std::uint64_t> first;
        std::unordered_map<std::string, std::uint64_t> known;
        const std::uint64_t needed = std::min(combinations.size(), most_combinations + 1) * section.weight;
        if (combinations.size() <= most_combinations && work + needed <= most_work) {
            work += needed;
            for (std::uint64_t i = 0; i < combinations.size(); ++i)
                first.push_back(known.emplace(fingerprint(section, combinations.at(i)), i).first->second);
        }
        some_alike = some_alike || known.size() < first.size();
        out.push_back({std::move(combinations), std::move(first)});
    }
    if (!some_alike) out.clear(); // every factor is used by some section, so no two cells are the same
    return out;
}

std::vector<std::uint64_t> likeness_of(std::uint64_t cell, const std::vector<Likeness>& sections,
                                       const Combinations& cells) {
    std::vector<std::uint64_t> out;
    for (const Likeness& section : sections) {
        const std::uint64_t combination = section.combinations.of_cell(cell, cells);
        out.push_back(section.first.empty() ? combination : section.first[combination]);
    }
    return out;
}

} // namespace

void check_distinct(const YamlNode& document, const std::vector<Factor>& factors, std::vector<Fault>& faults) {
    const std::vector<Likeness> sections = likenesses(document, factors);
    if (sections.empty()) return;
    const Combinations cells(factors, every_index(factors));
    std::unordered_map<std::uint64_t, std::uint64_t> known; // hash -> cell
    for (std::uint64_t cell = 0; cell < cells.size(); ++cell) {
        const std::vector<std::uint64_t> mine = likeness_of(cell, sections, cells);
        std::uint64_t hash = 0;
        for (const std::uint64_t part : mine) hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL, hash ^= hash >> 29;
        const auto [other, added] = known.emplace(hash, cell);
        if (added || likeness_of(other->second, sections, cells) != mine) continue;
        Levels first = cells.at(other->second), second = cells.at(cell);
        for (const Factor& factor : factors)
            if (first[factor.name] == second[factor.name]) first.erase(factor.name), second.erase(factor.name);
        const YamlNode* node = document.find("factors");
        const YamlEntry* entry = node && !first.empty() ? node->entry(first.begin()->first) : nullptr;
        const YamlMark at = entry ? entry->key_mark : YamlMark{};
        faults.push_back({at.line, at.column, "factors",
                          "two cells are the same run: " + described(first) + " and " + described(second),
                          "take one of the levels out"});
        return;
    }
}

} // namespace perfrig
