// Tools, phases, kernel arguments and roles of the experiment's own.
#include "common/experiment/sections.hpp"
#include "common/experiment/tool_options.hpp"

#include <algorithm>

namespace perfrig {

namespace {

constexpr std::int64_t day_ms = 24 * 3'600'000;

// Options as text throughout: a level of a factor is text too, and the table of options says what it must look like.
Json options_json(const YamlNode& node) {
    switch (node.kind) {
    case YamlNode::Kind::null: return nullptr;
    case YamlNode::Kind::scalar: return node.text;
    case YamlNode::Kind::list: {
        Json out = Json::array();
        for (const YamlNode& item : node.items) out.push_back(options_json(item));
        return out;
    }
    case YamlNode::Kind::map: break;
    }
    Json out = Json::object();
    for (const YamlEntry& entry : node.entries) out[entry.key] = options_json(entry.value);
    return out;
}

// The node at "metrics/0/unit", or the last one on the way that is there.
const YamlNode& node_at(const YamlNode& tool, std::string_view path) {
    const YamlNode* at = &tool;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        const YamlNode* next = at->find(part);
        if (at->is_list())
            for (std::size_t i = 0; i < at->items.size(); ++i)
                if (std::to_string(i) == part) next = &at->items[i];
        if (!next) break;
        at = next;
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    }
    return *at;
}

void check_options(YamlReader& in, const YamlNode& node, const ToolSpec& tool) {
    for (const OptionFault& fault : check_tool_options(tool.tool, tool.options)) {
        std::string path = in.path();
        if (!fault.path.empty()) path += "." + fault.path;
        std::replace(path.begin(), path.end(), '/', '.');
        in.fault(node_at(node, fault.path), path, path + " " + fault.message, fault.suggestion);
    }
}

} // namespace

ToolPart read_tool(const std::string& name, const YamlNode& node, Findings& out) {
    ToolPart part;
    ToolSpec& tool = part.spec;
    tool.name = name;
    YamlReader in(node, "tools." + name, out.faults);
    tool.tool = in.text("tool");
    tool.role = read_role(in);
    tool.environment = read_environment(in, out);
    tool.speculation = read_speculation(in);
    tool.warms_up = in.boolean("warms_up", true);
    part.ends_by_itself = tool.tool == "perf-sched-pipe";
    if (tool.tool == "command") part.ends_by_itself = in.boolean("ends_by_itself", false);
    const ToolDescription* description = find_tool_description(tool.tool);
    if (!description) {
        std::vector<std::string> known;
        std::string all;
        for (const ToolDescription& d : tool_descriptions()) {
            known.emplace_back(d.name);
            all += (all.empty() ? "" : ", ") + known.back();
        }
        const std::string near = nearest_word(tool.tool, known);
        if (!tool.tool.empty())
            in.fault_at("tool", "there is no tool '" + tool.tool.substr(0, 60) + "'",
                        near.empty() ? "one of " + all : "did you mean '" + near + "'?");
        return part; // whose options these are can't be said
    }
    for (const OptionSpec& option : description->options) {
        const std::string key(option.name);
        if (const YamlNode* value = in.node(key.c_str())) tool.options[key] = options_json(*value);
    }
    check_options(in, node, tool);
    in.finish();
    return part;
}

PhasesPart read_phases(const YamlNode& node, Findings& out) {
    YamlReader in(node, "phases", out.faults);
    PhasesPart phases;
    phases.warm_up_ms = read_milliseconds(in, "warm_up", 0, day_ms);
    phases.pause_ms = read_milliseconds(in, "pause", 0, day_ms);
    phases.measure_ms = read_milliseconds(in, "measure", 0, day_ms);
    if (in.has("measure") && phases.measure_ms == 0 && parse_duration(in.text("measure")).has_value())
        in.fault_at("measure", "phases.measure is zero",
                    "give it a time, or leave it out where every tool ends by itself");
    in.finish();
    return phases;
}

void check_durations(const ToolPart& tool, const PhasesPart& phases, const YamlNode& document, Findings& out) {
    const YamlNode* node = document.find("phases");
    YamlReader in(node && node->is_map() ? *node : document, node && node->is_map() ? "phases" : "", out.faults);
    const auto check = [&](const char* phase, std::int64_t ms) {
        for (const OptionFault& fault : check_tool_duration(tool.spec.tool, phase, Milliseconds(ms)))
            in.fault_at(phase, "tools." + tool.spec.name + ": " + fault.message,
                        fault.suggestion.empty() ? "" : "phases." + std::string(phase) + ": " + fault.suggestion);
    };
    if (tool.spec.warms_up && phases.warm_up_ms > 0) check("warm_up", phases.warm_up_ms);
    if (phases.measure_ms > 0)
        check("measure", phases.measure_ms);
    else if (!tool.ends_by_itself && !(node && node->find("measure")))
        in.fault_at("measure", "phases.measure is missing, and tools." + tool.spec.name + " does not end by itself",
                    tool.spec.tool == "command"
                        ? "measure: 30s; or, for a program that ends, ends_by_itself: true in its tool"
                        : "measure: 30s");
}

std::map<std::string, std::optional<std::string>> read_kernel_args(const YamlNode& node, Findings& out) {
    std::map<std::string, std::optional<std::string>> result;
    YamlReader in(node, "kernel_args", out.faults);
    for (const YamlEntry& entry : node.entries) {
        const std::string where = in.path_of(entry.key);
        YamlNode at;
        at.mark = entry.key_mark;
        const bool odd = entry.key.empty() || entry.key.find_first_of(" \t\r\n=\"'") != std::string::npos;
        if (odd)
            in.fault(at, where, "'" + entry.key.substr(0, 60) + "' is no name of a kernel parameter",
                     "leave out blanks, quotes and =");
        if (!entry.value.is_null() && !entry.value.is_scalar()) {
            in.fault(entry.value, where, where + " must be text, or null for a parameter that must be absent", "");
        } else if (entry.value.text.find_first_of("\r\n\"") != std::string::npos) {
            in.fault(entry.value, where, where + " holds what no kernel command line can",
                     "leave out quotes and line ends");
        } else if (entry.value.is_null()) {
            result[entry.key] = std::nullopt;
        } else {
            result[entry.key] = entry.value.text == "true" && !entry.value.quoted ? std::string() : entry.value.text;
        }
    }
    return result;
}

std::map<std::string, RoleRecipe> read_roles(const YamlNode& node, Findings& out) {
    std::map<std::string, RoleRecipe> result;
    YamlReader in(node, "roles", out.faults);
    for (const YamlEntry& entry : node.entries) {
        YamlReader role(entry.value, in.path_of(entry.key), out.faults);
        RoleRecipe recipe;
        const YamlNode& from = role.required("from");
        if (from.is_scalar())
            recipe.from = {from.text};
        else if (!from.is_null())
            recipe.from = role.texts("from");
        if (from.is_list() && from.items.empty())
            role.fault_at("from", role.path_of("from") + " is empty", "name a role of the profile");
        for (const std::string& source : recipe.from)
            if (!is_name(source))
                role.fault_at("from", "'" + source.substr(0, 60) + "' is no name of a role", "such as app");
        if (role.required("cpus").is_scalar()) recipe.cpus = static_cast<int>(role.integer("cpus", 1, 1, 8192));
        role.finish();
        if (!is_name(entry.key)) {
            YamlNode at;
            at.mark = entry.key_mark;
            in.fault(at, in.path_of(entry.key), "'" + entry.key.substr(0, 60) + "' is no name of a role",
                     "lower-case letters, digits, _ and -, from a letter");
        }
        result[entry.key] = std::move(recipe);
    }
    return result;
}

} // namespace perfrig
