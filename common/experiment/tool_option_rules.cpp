#include "common/experiment/tool_option_rules.hpp"

#include "common/base/line_pattern.hpp"
#include "common/base/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace perfrig {

namespace option_values {

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

} // namespace option_values

namespace {

using Faults = std::vector<OptionFault>;
using namespace option_values;

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

// What service demand, switches per request and Little's law are formed from must be what its name says.
std::string_view unit_wanted(std::string_view name) {
    for (const auto rate : {"requests_per_second", "transactions_per_second", "operations_per_second"})
        if (name == rate) return "1/s";
    return name == "latency_seconds" || name == "operation_seconds" ? "s" : "";
}

void check_name(const Json& entry, const std::string& path, std::set<std::string>& seen, Faults& faults) {
    const auto found = entry.find("name"), unit = entry.find("unit");
    if (found == entry.end() || !found->is_string()) return;
    const auto& name = found->get_ref<const std::string&>();
    if (!is_name(name))
        return faults.push_back(
            {path + "/name", "must be lower case letters, digits and _, from a letter", "such as latency_seconds"});
    if (is_reserved_metric(name))
        faults.push_back({path + "/name", "is what perfrig itself calls something that it finds out",
                          "another name, such as own_" + name});
    if (const auto wanted = unit_wanted(name); !wanted.empty() && unit != entry.end() && unit->is_string() &&
                                               !left_to_agent(*unit) && unit->get_ref<const std::string&>() != wanted)
        faults.push_back({path + "/unit", "must be " + std::string(wanted) + " with that name",
                          "scale takes the printed number to it"});
    const Json labels = entry.value("labels", Json::object());
    if (!seen.insert(name + labels.dump(-1, ' ', false, Json::error_handler_t::replace)).second)
        faults.push_back({path + "/name", "is given twice with the same labels: only one of the two would be kept",
                          "another name, or labels"});
}

void check_picks(const Json& options, const char* list, Faults& faults) {
    const auto entries = options.find(list);
    if (entries == options.end() || !entries->is_array()) return;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < entries->size(); ++i) {
        const Json& entry = (*entries)[i];
        if (!entry.is_object()) continue;
        const std::string path = std::string(list) + "/" + std::to_string(i);
        check_name(entry, path, seen, faults);
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

bool is_reserved_metric(std::string_view name) {
    static constexpr std::string_view names[] = {"cpu_busy_ratio",
                                                 "cpu_other_ratio",
                                                 "in_flight_ratio",
                                                 "context_switches_per_second",
                                                 "context_switches_per_request",
                                                 "run_queue_wait_ratio",
                                                 "thread_group_cpu_ratio",
                                                 "thread_group_run_queue_wait_ratio",
                                                 "thread_group_switches_per_second",
                                                 "thread_group_threads",
                                                 "service_demand_seconds",
                                                 "thread_coverage_ratio",
                                                 "agent_cpu_ratio",
                                                 "agent_cpu_seconds",
                                                 "cpu_idle_seconds",
                                                 "cpu_iowait_seconds",
                                                 "cpu_irq_seconds",
                                                 "cpu_nice_seconds",
                                                 "cpu_softirq_seconds",
                                                 "cpu_steal_seconds",
                                                 "cpu_system_seconds",
                                                 "cpu_user_seconds",
                                                 "memory_anonymous_bytes",
                                                 "memory_available_bytes",
                                                 "memory_buffers_bytes",
                                                 "memory_cached_bytes",
                                                 "memory_dirty_bytes",
                                                 "memory_free_bytes",
                                                 "swap_used_bytes",
                                                 "process_cpu_seconds",
                                                 "process_rss_bytes",
                                                 "process_waited_children_cpu_seconds",
                                                 "thread_cpu_seconds",
                                                 "thread_cpu_system_seconds",
                                                 "thread_cpu_user_seconds",
                                                 "thread_involuntary_switches",
                                                 "thread_run_queue_wait_seconds",
                                                 "thread_voluntary_switches"};
    return std::ranges::find(names, name) != std::end(names);
}

void check_tool_rules(std::string_view tool, const Json& options, Faults& faults) {
    if (tool == "wrk") check_wrk(options, faults);
    if (tool == "pgbench") check_pgbench(options, faults);
    if (tool == "command") {
        check_picks(options, "metrics", faults);
        check_picks(options, "series", faults);
    }
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
