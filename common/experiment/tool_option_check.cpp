// check_tool_options: the tables of tool_options.cpp held against JSON.
#include "common/base/json.hpp"
#include "common/base/units.hpp"
#include "common/experiment/tool_option_rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace perfrig {

namespace {

using Faults = std::vector<OptionFault>;
using namespace option_values;

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t swapped = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, swapped});
        }
    }
    return row.back();
}

// "did you mean 'X'?" when one is near, else the list.
template <class Range, class Name> std::string nearest(std::string_view wrong, const Range& known, Name name_of) {
    std::string list;
    std::string_view best;
    std::size_t best_distance = wrong.size() < 4 ? 2 : 3;
    for (const auto& k : known) {
        const std::string_view name = name_of(k);
        list += (list.empty() ? "" : ", ") + std::string(name);
        if (wrong.size() > 64) continue;
        if (const auto d = edit_distance(wrong, name); d < best_distance) {
            best = name;
            best_distance = d;
        }
    }
    return best.empty() ? "one of: " + list : "did you mean '" + std::string(best) + "'?";
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

void check_objects(std::span<const OptionSpec> specs, const Json& object, const std::string& path, Faults& faults);

void check_number(const OptionSpec& spec, const Json& value, const std::string& path, Faults& faults) {
    const auto number = number_of(value);
    const bool whole = spec.type == OptionType::integer;
    if (!number || !std::isfinite(*number) || (whole && *number != std::floor(*number))) {
        faults.push_back({path, whole ? "must be a whole number" : "must be a number", {}});
    } else if (spec.minimum != spec.maximum && (*number < spec.minimum || *number > spec.maximum)) {
        faults.push_back({path, shown(*number) + " is out of range", //
                          "from " + shown(spec.minimum) + " to " + shown(spec.maximum)});
    }
}

void check_duration(const OptionSpec& spec, const Json& value, const std::string& path, Faults& faults) {
    const auto time = value.is_string() ? parse_duration(value.get_ref<const std::string&>())
                                        : Result<Nanoseconds>(fail(ErrorKind::bad_input, "", "", "no text"));
    if (!time) {
        faults.push_back({path, "must be a duration with a unit", "such as 30s or 500ms"});
        return;
    }
    const double seconds = std::chrono::duration<double>(*time).count();
    if (spec.minimum != spec.maximum && (seconds < spec.minimum || seconds > spec.maximum))
        faults.push_back({path, value.get<std::string>() + " is out of range",
                          "from " + shown(spec.minimum) + "s to " + shown(spec.maximum) + "s"});
}

void check_text(const OptionSpec& spec, const Json& value, const std::string& path, Faults& faults) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
        faults.push_back({path, "must be text that is not empty", {}});
        return;
    }
    const auto& text = value.get_ref<const std::string&>();
    if (has_nul(text)) {
        faults.push_back({path, "has a NUL byte in it, which no argument can carry", {}});
    } else if (!spec.choices.empty() && std::ranges::find(spec.choices, text) == spec.choices.end()) {
        faults.push_back({path, "'" + text.substr(0, 64) + "' is not known here",
                          nearest(text, spec.choices, [](std::string_view s) { return s; })});
    }
}

void check_texts(const Json& value, const std::string& path, bool may_be_empty, Faults& faults) {
    const bool right = value.is_array() || value.is_object();
    if (!right || (value.empty() && !may_be_empty)) {
        faults.push_back({path, value.empty() && right ? "must not be empty" : "must be a list of strings", {}});
        return;
    }
    for (const auto& [key, item] : value.items())
        if (!item.is_string() || has_nul(item.get_ref<const std::string&>()) || has_nul(key))
            faults.push_back({path + "/" + key, "must be a string without NUL bytes", "write it in quotes"});
}

void check_value(const OptionSpec& spec, const Json& value, const std::string& path, Faults& faults) {
    if (left_to_agent(value) && spec.type != OptionType::objects) return;
    switch (spec.type) {
    case OptionType::text: check_text(spec, value, path, faults); break;
    case OptionType::integer:
    case OptionType::number: check_number(spec, value, path, faults); break;
    case OptionType::duration: check_duration(spec, value, path, faults); break;
    case OptionType::boolean:
        if (!value.is_boolean() && value != Json("true") && value != Json("false"))
            faults.push_back({path, "must be true or false", {}});
        break;
    case OptionType::text_list: check_texts(value.is_object() ? Json() : value, path, false, faults); break;
    case OptionType::text_map:
        if (value.is_object())
            check_texts(value, path, true, faults);
        else
            faults.push_back({path, "must be a map of names to strings", {}});
        break;
    case OptionType::command:
        if (value.is_string())
            check_text(spec, value, path, faults);
        else
            check_texts(value.is_object() ? Json() : value, path, false, faults);
        break;
    case OptionType::objects:
        if (!value.is_array() || value.empty()) {
            faults.push_back({path, "must be a list with at least one entry", {}});
            break;
        }
        for (std::size_t i = 0; i < value.size(); ++i)
            check_objects(spec.members, value[i], path + "/" + std::to_string(i), faults);
        break;
    }
}

void check_objects(std::span<const OptionSpec> specs, const Json& object, const std::string& path, Faults& faults) {
    if (!object.is_object()) {
        faults.push_back({path, "must be a map of options", {}});
        return;
    }
    const auto at = [&](std::string_view name) {
        return path.empty() ? std::string(name) : path + "/" + std::string(name);
    };
    const auto name_of = [](const OptionSpec& s) { return s.name; };
    for (const auto& [key, value] : object.items()) {
        const auto spec = std::ranges::find(specs, key, name_of);
        if (spec == specs.end())
            faults.push_back({at(key), "is no option here", nearest(key, specs, name_of)});
        else
            check_value(*spec, value, at(key), faults);
    }
    for (const auto& spec : specs)
        if (spec.required && !object.contains(spec.name))
            faults.push_back({at(spec.name), "is missing", std::string(spec.help)});
}

} // namespace

std::vector<OptionFault> check_tool_options(std::string_view tool, const Json& options) {
    Faults faults;
    const auto* description = find_tool_description(tool);
    if (!description) {
        const auto name_of = [](const ToolDescription& d) { return d.name; };
        faults.push_back({"", "there is no tool '" + std::string(tool.substr(0, 64)) + "'",
                          nearest(tool, tool_descriptions(), name_of)});
        return faults;
    }
    check_objects(description->options, options, "", faults);
    if (!options.is_object()) return faults;
    check_tool_rules(tool, options, faults);
    return faults;
}

} // namespace perfrig
