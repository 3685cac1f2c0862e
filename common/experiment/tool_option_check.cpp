// check_tool_options and check_tool_duration: the tables of tool_options.cpp held against JSON, and what options demand
// of each other.
#include "common/base/json.hpp"
#include "common/base/line_pattern.hpp"
#include "common/base/units.hpp"
#include "common/experiment/tool_options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace perfrig {

namespace {

using Faults = std::vector<OptionFault>;

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

bool left_to_agent(const Json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find("${") != std::string::npos;
}

std::optional<double> number_of(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::string shown(double v) {
    if (v == std::floor(v) && std::abs(v) < 1e15) return std::to_string(static_cast<long long>(v));
    return Json(v).dump();
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

// Numbers that are there and good; the table's check has already spoken of the others.
std::optional<double> given(const Json& options, const char* key) {
    const auto found = options.find(key);
    return found == options.end() || left_to_agent(*found) ? std::nullopt : number_of(*found);
}

void exclude(const Json& options, std::initializer_list<const char*> names, Faults& faults) {
    const char* first = nullptr;
    for (const char* name : names) {
        if (!options.contains(name)) continue;
        if (first)
            faults.push_back({name, std::string("can't stand beside ") + first, "give one of the two"});
        else
            first = name;
    }
}

void check_wrk(const Json& options, Faults& faults) {
    if (const auto url = options.find("url"); url != options.end() && url->is_string() && !left_to_agent(*url)) {
        const auto& text = url->get_ref<const std::string&>();
        if (!text.empty() && !text.starts_with("http://") && !text.starts_with("https://"))
            faults.push_back({"url", "wrk speaks http:// and https:// only", "http://" + text.substr(0, 64)});
    }
    // wrk opens connections / threads on each thread and drops the remainder, but prints what it was told.
    const auto connections = given(options, "connections");
    const double threads = given(options, "threads").value_or(1);
    if (connections && threads >= 1 && std::fmod(*connections, threads) != 0) {
        const double opened = threads * std::floor(*connections / threads);
        faults.push_back({"threads",
                          opened == 0 ? "wrk refuses fewer connections than threads"
                                      : "wrk would open " + shown(opened) + " connections and print " +
                                            shown(*connections) + ", because threads don't divide connections",
                          "a number of threads that divides " + shown(*connections)});
    }
    if (const auto timeout = options.find("timeout"); timeout != options.end() && timeout->is_string()) {
        const auto time = parse_duration(timeout->get_ref<const std::string&>());
        if (time && *time % std::chrono::seconds(1) != Nanoseconds(0))
            faults.push_back({"timeout", "wrk takes whole seconds only", "1s or 2s"});
    }
    if (const auto headers = options.find("headers"); headers != options.end() && headers->is_array()) {
        for (std::size_t i = 0; i < headers->size(); ++i) {
            if (!(*headers)[i].is_string()) continue;
            const auto& line = (*headers)[i].get_ref<const std::string&>();
            if (line.find(':') == std::string::npos || line.find_first_of("\r\n") != std::string::npos)
                faults.push_back({"headers/" + std::to_string(i), "is not one header line", "Name: value"});
        }
    }
    exclude(options, {"script", "script_file"}, faults);
}

void check_pgbench(const Json& options, Faults& faults) {
    for (const char* part : {"database", "host", "port", "user"}) exclude(options, {"uri", part}, faults);
    exclude(options, {"builtin", "select_only"}, faults);
    for (const char* scripts : {"scripts", "script_files"}) {
        exclude(options, {"builtin", scripts}, faults);
        exclude(options, {"select_only", scripts}, faults);
    }
    const auto threads = given(options, "threads");
    const double clients = given(options, "clients").value_or(1);
    if (threads && *threads > clients)
        faults.push_back(
            {"threads", "pgbench would use only as many threads as there are clients", "at most " + shown(clients)});
}

bool is_name(std::string_view name) {
    return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && name.size() <= 64 &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

void check_pattern(const Json& entry, const std::string& path, Faults& faults) {
    const auto found = entry.find("pattern");
    if (found == entry.end() || !found->is_string()) return;
    const auto pattern = LinePattern::compile(found->get_ref<const std::string&>());
    if (!pattern)
        faults.push_back({path + "/pattern", pattern.error().why, pattern.error().remedy});
    else if (pattern->groups() != 1)
        faults.push_back(
            {path + "/pattern", "must have exactly one group, the number", "(...) around it, (?:...) elsewhere"});
}

void check_picks(const Json& options, const char* list, Faults& faults) {
    const auto entries = options.find(list);
    if (entries == options.end() || !entries->is_array()) return;
    for (std::size_t i = 0; i < entries->size(); ++i) {
        const Json& entry = (*entries)[i];
        if (!entry.is_object()) continue;
        const std::string path = std::string(list) + "/" + std::to_string(i);
        if (const auto name = entry.find("name"); name != entry.end() && name->is_string())
            if (!is_name(name->get_ref<const std::string&>()))
                faults.push_back({path + "/name", "must be lower case letters, digits and _, from a letter",
                                  "such as latency_seconds"});
        if (list == std::string_view("metrics") && entry.contains("pattern") == entry.contains("pointer"))
            faults.push_back({path, "needs either a pattern or a pointer", {}});
        if (const auto pointer = entry.find("pointer"); pointer != entry.end() && pointer->is_string()) try {
                (void)Json::json_pointer(pointer->get_ref<const std::string&>());
            } catch (const Json::exception&) { // the library reports by exception alone
                faults.push_back({path + "/pointer", "is no JSON pointer (RFC 6901)", "such as /latency/p99"});
            }
        check_pattern(entry, path, faults);
    }
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
    if (tool == "wrk") check_wrk(options, faults);
    if (tool == "pgbench") check_pgbench(options, faults);
    if (tool == "command") {
        check_picks(options, "metrics", faults);
        check_picks(options, "series", faults);
    }
    return faults;
}

std::vector<OptionFault> check_tool_duration(std::string_view tool, std::string_view phase, Nanoseconds duration) {
    if (tool != "wrk" && tool != "pgbench") return {};
    if (duration <= Nanoseconds(0))
        return {{std::string(phase), std::string(tool) + " runs for a time and needs one", "such as 30s"}};
    if (duration % std::chrono::seconds(1) == Nanoseconds(0)) return {};
    const auto whole = std::chrono::ceil<std::chrono::seconds>(duration);
    return {{std::string(phase), std::string(tool) + " takes whole seconds only, not " + format_duration(duration),
             format_duration(whole)}};
}

} // namespace perfrig
