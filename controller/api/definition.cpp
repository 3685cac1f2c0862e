#include "controller/api/definition.hpp"

#include "controller/api/request.hpp"

namespace perfrig::api {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        if (end > at) lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

Result<Definition> from_json(const Request& request) {
    PERFRIG_TRY(const auto body, json_body(request));
    JsonReader in(body, "the request body");
    Definition definition;
    definition.text = in.string("definition");
    static const Json none = Json::array();
    for (const auto& one : in.has("overrides") ? in.array("overrides") : none) {
        if (!one.is_string()) in.fault("overrides must be a list of texts \"PATH=VALUE\"");
        if (one.is_string()) definition.overrides.push_back(one.get<std::string>());
    }
    const auto priority = in.integer_or("priority", 0);
    if (priority < -1000 || priority > 1000) in.fault("priority must be from -1000 to 1000");
    definition.priority = static_cast<int>(priority);
    definition.source = in.string_or("source", "");
    definition.confirm = in.boolean_or("confirm", false);
    in.string_or("file", "");
    for (const auto& [key, value] : body.items())
        if (key != "definition" && key != "overrides" && key != "priority" && key != "source" && key != "confirm" &&
            key != "file")
            in.fault("there is no member '" + key + "'");
    PERFRIG_CHECK(in.finish());
    return definition;
}

Result<Definition> from_text(const Request& request) {
    PERFRIG_CHECK(only_query(request, {"set", "priority", "confirm", "source"}));
    Definition definition;
    definition.text = request.http.body;
    definition.overrides = lines_of(query_text(request, "set").value_or(""));
    PERFRIG_TRY(const auto priority, query_integer(request, "priority", 0, -1000, 1000));
    definition.priority = static_cast<int>(priority);
    definition.source = query_text(request, "source").value_or("");
    PERFRIG_TRY(definition.confirm, query_boolean(request, "confirm", false));
    return definition;
}

} // namespace

Result<Definition> read_definition(const Request& request) {
    PERFRIG_TRY(auto definition, has_json_body(request) ? from_json(request) : from_text(request));
    if (definition.source.size() > 200)
        return fail(ErrorKind::bad_input, "take the source", "", "it is longer than 200 bytes");
    return definition;
}

CheckedDefinition check_definition(const Definition& definition) {
    CheckedDefinition checked;
    auto parsed = parse_experiment(definition.text, definition.overrides);
    if (!parsed.experiment) {
        checked.refusal = "the definition has " + std::to_string(parsed.faults.size()) +
                          (parsed.faults.size() == 1 ? " fault" : " faults");
        checked.faults = std::move(parsed.faults);
        return checked;
    }
    checked.experiment = std::move(*parsed.experiment);
    auto plan = expand(*checked.experiment);
    if (plan)
        checked.plan = std::move(*plan);
    else
        checked.refusal = plan.error().text();
    return checked;
}

} // namespace perfrig::api
