#include "agent/run/fill_in.hpp"

namespace perfrig {

namespace {

Json fill_in_json(Json json, const FillIns& values) {
    if (json.is_string()) return fill_in(json.get_ref<const std::string&>(), values);
    if (json.is_array() || json.is_object())
        for (Json& item : json) item = fill_in_json(std::move(item), values);
    return json;
}

void fill_in_all(std::vector<std::string>& texts, const FillIns& values) {
    for (std::string& text : texts) text = fill_in(text, values);
}

void fill_in_all(std::map<std::string, std::string>& texts, const FillIns& values) {
    for (auto& [key, text] : texts) text = fill_in(text, values);
}

void fill_in_command(Command& command, const FillIns& values) {
    fill_in_all(command.argv, values);
    fill_in_all(command.environment, values);
    command.directory = fill_in(command.directory, values);
}

} // namespace

FillIns fill_ins(const std::string& directory, const std::map<std::string, std::uint16_t>& ports) {
    FillIns values{{"run.directory", directory}};
    for (const auto& [name, port] : ports) values["port." + name] = std::to_string(port);
    return values;
}

std::string fill_in(std::string_view text, const FillIns& values) {
    std::string out;
    while (true) {
        const std::size_t begin = text.find("${");
        const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
        if (end == std::string_view::npos) return out.append(text);
        const auto value = values.find(std::string(text.substr(begin + 2, end - begin - 2)));
        if (value == values.end()) {
            out.append(text.substr(0, begin + 2));
            text.remove_prefix(begin + 2);
        } else {
            out.append(text.substr(0, begin)).append(value->second);
            text.remove_prefix(end + 1);
        }
    }
}

ResolvedRun fill_in(ResolvedRun run, const FillIns& values) {
    fill_in_all(run.files, values);
    for (Command& command : run.build) fill_in_command(command, values);
    for (ServiceSpec& service : run.services) {
        fill_in_command(service.command, values);
        service.ready.target = fill_in(service.ready.target, values);
        fill_in_all(service.ready.argv, values);
    }
    for (ToolSpec& tool : run.tools) {
        tool.options = fill_in_json(std::move(tool.options), values);
        fill_in_all(tool.environment, values);
    }
    return run;
}

} // namespace perfrig
