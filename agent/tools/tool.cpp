#include "agent/tools/tool.hpp"

#include "agent/tools/command.hpp"
#include "agent/tools/option_values.hpp"
#include "agent/tools/perf_sched_pipe.hpp"
#include "agent/tools/pgbench.hpp"
#include "agent/tools/wrk.hpp"
#include "common/base/json.hpp"

namespace perfrig {

std::optional<LiveSample> Tool::parse_live_line(std::string_view, bool) const { return std::nullopt; }

Result<std::string> Tool::parse_version(std::string_view out, std::string_view err) const {
    const auto shown = out.empty() ? err : out;
    return fail(ErrorKind::bad_input, "read the version of", std::string(name()),
                "it printed '" + std::string(shown.substr(0, 120)) + "'");
}

std::string dropped_mark(std::uint64_t bytes) { return "\n[" + std::to_string(bytes) + " bytes were dropped here]\n"; }

std::map<std::string, std::string> forced_tool_environment() { return {{"LC_ALL", "C"}, {"S_TIME_FORMAT", "ISO"}}; }

namespace {

// What the agent should have filled in by now, where a number or a choice is wanted.
void find_leftovers(const ToolDescription& tool, const Json& options, std::vector<OptionFault>& faults) {
    for (const auto& spec : tool.options) {
        const auto found = options.find(spec.name);
        const bool free_text = spec.type == OptionType::text || spec.type == OptionType::command;
        if (found == options.end() || !found->is_string() || (free_text && spec.choices.empty())) continue;
        if (found->get_ref<const std::string&>().find("${") != std::string::npos)
            faults.push_back({std::string(spec.name), "nothing was filled in for " + found->get<std::string>(), {}});
    }
}

} // namespace

std::vector<OptionFault> validate_tool_options(std::string_view name, const nlohmann::json& options) {
    return check_tool_options(name, options);
}

Result<std::unique_ptr<Tool>> make_tool(std::string_view name, const nlohmann::json& options) {
    auto faults = check_tool_options(name, options);
    if (faults.empty()) find_leftovers(*find_tool_description(name), options, faults);
    if (!faults.empty()) {
        std::string why;
        for (const auto& fault : faults) {
            if (!why.empty()) why += "; ";
            if (!fault.path.empty()) why += "option " + fault.path + " ";
            why += fault.message;
        }
        return fail(ErrorKind::bad_input, "prepare the tool", std::string(name.substr(0, 64)), why,
                    faults[0].suggestion);
    }
    const OptionValues values(options);
    if (name == "wrk") return make_wrk(values);
    if (name == "pgbench") return make_pgbench(values);
    if (name == "perf-sched-pipe") return make_perf_sched_pipe(values);
    return make_command(options);
}

} // namespace perfrig
