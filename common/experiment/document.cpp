#include "common/experiment/document.hpp"

#include "common/experiment/references.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace perfrig {

namespace {

std::string seconds_text(std::int64_t ms) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, static_cast<double>(ms) / 1000);
    return error == std::errc() ? std::string(text, end) : std::to_string(ms / 1000);
}

std::size_t weight_of(const YamlNode& node) {
    std::size_t weight = sizeof(YamlNode) + node.text.size();
    for (const YamlNode& item : node.items) weight += weight_of(item);
    for (const YamlEntry& entry : node.entries) weight += entry.key.size() + weight_of(entry.value);
    return weight;
}

const YamlNode nothing;

const YamlNode& part(const YamlNode& document, std::string_view key) {
    const YamlNode* node = document.find(key);
    return node ? *node : nothing;
}

// Those of the document's entries that have these keys.
YamlNode only(const YamlNode& document, std::initializer_list<std::string_view> keys) {
    YamlNode out;
    out.kind = YamlNode::Kind::map;
    out.mark = document.mark;
    for (const YamlEntry& entry : document.entries)
        if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) out.entries.push_back(entry);
    return out;
}

// What stands for the names in a section: the levels, and the phases' lengths where the section asks for them.
class Filler {
  public:
    Filler(const YamlNode& document, bool wants_phases) : document_(document), wants_phases_(wants_phases) {}

    YamlNode fill(const YamlNode& node, const Levels& levels, Findings& out) const {
        if (!wants_phases_) return substitute(node, levels, out.faults);
        Levels values = levels;
        Findings said_elsewhere;
        const PhasesPart phases =
            read_phases(substitute(part(document_, "phases"), levels, said_elsewhere.faults), said_elsewhere);
        values["measure.seconds"] = seconds_text(phases.measure_ms);
        values["warm_up.seconds"] = seconds_text(phases.warm_up_ms);
        return substitute(node, values, out.faults);
    }

  private:
    const YamlNode& document_;
    bool wants_phases_;
};

class SectionMaker {
  public:
    SectionMaker(const YamlNode& document, const std::vector<Factor>& factors)
        : document_(document), factors_(factors), phase_names_(names_in(part(document, "phases"))) {}

    template <class Read> void add(std::string path, const YamlNode& node, Read read) {
        std::set<std::string> names = names_in(node);
        const bool wants_phases = names.contains("measure.seconds") || names.contains("warm_up.seconds");
        if (wants_phases) names.insert(phase_names_.begin(), phase_names_.end());
        Section section;
        section.path = std::move(path);
        for (std::size_t i = 0; i < factors_.size(); ++i)
            if (names.contains(factors_[i].name)) section.factors.push_back(i);
        section.weight = weight_of(node);
        section.read = [filler = Filler(document_, wants_phases), node = &node, read](const Levels& levels,
                                                                                      Findings& out, Parts& parts) {
            read(filler.fill(*node, levels, out), out, parts);
        };
        sections.push_back(std::move(section));
    }

    // Depends on two places: a tool and the phases.
    void add_durations(const std::string& name, const YamlNode& tool) {
        std::set<std::string> names = names_in(only(tool, {"tool", "warms_up", "ends_by_itself"}));
        names.insert(phase_names_.begin(), phase_names_.end());
        Section section;
        section.path = "phases";
        section.yields = false;
        for (std::size_t i = 0; i < factors_.size(); ++i)
            if (names.contains(factors_[i].name)) section.factors.push_back(i);
        section.weight = weight_of(part(document_, "phases")) + sizeof(YamlNode) * 4;
        section.read = [name, &tool, document = &document_](const Levels& levels, Findings& out, Parts&) {
            Findings said_elsewhere;
            const YamlNode filled = substitute(only(*document, {"phases"}), levels, said_elsewhere.faults);
            const YamlNode head =
                substitute(only(tool, {"tool", "warms_up", "ends_by_itself"}), levels, said_elsewhere.faults);
            ToolPart tool_part = read_tool(name, head, said_elsewhere);
            const PhasesPart phases = read_phases(part(filled, "phases"), said_elsewhere);
            if (!tool_part.spec.tool.empty()) check_durations(tool_part, phases, filled, out);
        };
        sections.push_back(std::move(section));
    }

    std::vector<Section> sections;

  private:
    const YamlNode& document_;
    const std::vector<Factor>& factors_;
    std::set<std::string> phase_names_;
};

} // namespace

std::vector<Section> sections_of(const YamlNode& document, const std::vector<Factor>& factors) {
    SectionMaker maker(document, factors);
    maker.add("kernel_args", part(document, "kernel_args"), [](const YamlNode& node, Findings& out, Parts& parts) {
        parts.run.kernel_args = read_kernel_args(node, out);
    });
    maker.add("roles", part(document, "roles"),
              [](const YamlNode& node, Findings& out, Parts& parts) { parts.roles = read_roles(node, out); });
    for (const YamlEntry& file : part(document, "files").entries)
        maker.add("files." + file.key, file.value,
                  [path = file.key](const YamlNode& node, Findings& out, Parts& parts) {
                      if (!node.is_scalar())
                          out.faults.push_back({node.mark.line, node.mark.column, "files." + path,
                                                "files." + path + " must be the file's text",
                                                node.is_null() ? "write \"\" for an empty file" : "begin it with '|'"});
                      parts.run.files[path] = node.text;
                  });
    // The build is three keys of the document, so its section reads the document's copy that holds those alone.
    const auto read_build_keys = [](const YamlNode& node, Findings& out, Parts& parts) {
        YamlReader in(node, "", out.faults);
        BuildPart build = read_build(in, out);
        parts.run.build = std::move(build.commands);
        parts.run.build_role = std::move(build.role);
        parts.run.build_within_ms = build.within_ms;
    };
    const auto build_keys = std::make_shared<const YamlNode>(only(document, {"build", "build_role", "build_within"}));
    maker.add("build", *build_keys, [build_keys, read_build_keys](const YamlNode& node, Findings& out, Parts& parts) {
        read_build_keys(node, out, parts);
    });
    for (const YamlEntry& service : part(document, "services").entries)
        maker.add("services." + service.key, service.value,
                  [name = service.key](const YamlNode& node, Findings& out, Parts& parts) {
                      parts.run.services.push_back(read_service(name, node, out));
                  });
    for (const YamlEntry& tool : part(document, "tools").entries)
        maker.add("tools." + tool.key, tool.value,
                  [name = tool.key](const YamlNode& node, Findings& out, Parts& parts) {
                      parts.run.tools.push_back(read_tool(name, node, out).spec);
                  });
    maker.add("phases", part(document, "phases"), [](const YamlNode& node, Findings& out, Parts& parts) {
        const PhasesPart phases = read_phases(node, out);
        parts.run.warm_up_ms = phases.warm_up_ms;
        parts.run.pause_ms = phases.pause_ms;
        parts.run.measure_ms = phases.measure_ms;
    });
    for (const YamlEntry& tool : part(document, "tools").entries)
        if (tool.value.is_map()) maker.add_durations(tool.key, tool.value);
    return std::move(maker.sections);
}

std::vector<std::size_t> every_index(const std::vector<Factor>& factors) {
    std::vector<std::size_t> out(factors.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    return out;
}

Combinations::Combinations(const std::vector<Factor>& factors, std::vector<std::size_t> chosen)
    : factors_(factors), chosen_(std::move(chosen)) {
    for (const std::size_t i : chosen_)
        if (__builtin_mul_overflow(size_, factors_[i].levels.size(), &size_)) {
            size_ = UINT64_MAX;
            return;
        }
}

Levels Combinations::at(std::uint64_t ordinal) const {
    Levels out;
    for (auto i = chosen_.rbegin(); i != chosen_.rend(); ++i) {
        const Factor& factor = factors_[*i];
        out[factor.name] = factor.levels[ordinal % factor.levels.size()];
        ordinal /= factor.levels.size();
    }
    return out;
}

std::uint64_t Combinations::of_cell(std::uint64_t cell, const Combinations& all) const {
    std::uint64_t out = 0, scale = 1;
    auto mine = chosen_.rbegin();
    for (auto i = all.chosen_.rbegin(); i != all.chosen_.rend() && mine != chosen_.rend(); ++i) {
        const std::uint64_t count = factors_[*i].levels.size();
        if (*i == *mine) {
            out += cell % count * scale;
            scale *= count;
            ++mine;
        }
        cell /= count;
    }
    return out;
}

} // namespace perfrig
