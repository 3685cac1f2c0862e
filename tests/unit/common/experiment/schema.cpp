// The JSON Schema for editors against the validator: the validator's own words are the truth.
#include "common/experiment/experiment.hpp"
#include "common/experiment/tool_options.hpp"

#include "tests/unit/common/experiment/experiments.hpp"

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

using namespace perfrig;

namespace {

std::string content(const std::string& path) {
    std::ifstream in(std::string(PERFRIG_SOURCE_DIR) + "/" + path);
    REQUIRE_MESSAGE(in, path);
    return {std::istreambuf_iterator<char>(in), {}};
}

const Json& schema() {
    static const Json json = Json::parse(content("schemas/experiment.schema.json"));
    return json;
}

// The keys that the validator says it knows, when it finds one that nobody could mean.
std::set<std::string> known_to_validator(const std::string& text) {
    std::set<std::string> out;
    for (const Fault& fault : parse_experiment(text).faults) {
        if (fault.message.find("unknown key 'zzzzzzzzzzzzzzzzzzzzzzzz'") == std::string::npos) continue;
        REQUIRE(fault.remedy.starts_with("known here: "));
        std::istringstream list(fault.remedy.substr(12));
        for (std::string key; std::getline(list, key, ',');) out.insert(key.substr(key.find_first_not_of(' ')));
    }
    return out;
}

std::set<std::string> keys_of(const Json& object) {
    std::set<std::string> out;
    for (const auto& [key, value] : object.items()) out.insert(key);
    return out;
}

std::set<std::string> in_schema(const std::string& pointer) {
    return keys_of(schema().at(Json::json_pointer(pointer + "/properties")));
}

const std::string odd = "zzzzzzzzzzzzzzzzzzzzzzzz: 1";

} // namespace

TEST_CASE("the schema knows exactly the keys that the validator knows") {
    const std::string head = "perfrig: 1\nname: a\n";
    CHECK(known_to_validator(head + odd + "\n") == in_schema(""));
    CHECK(known_to_validator(head + "phases: {" + odd + "}\n") == in_schema("/$defs/phases"));
    CHECK(known_to_validator(head + "machine: {" + odd + "}\n") == in_schema("/$defs/machine"));
    CHECK(known_to_validator(head + "roles: {r: {" + odd + "}}\n") == in_schema("/$defs/made_role"));
    CHECK(known_to_validator(head + "build: [{" + odd + "}]\n") == in_schema("/$defs/build_step"));
    CHECK(known_to_validator(head + "services: {s: {" + odd + "}}\n") == in_schema("/$defs/service"));
    for (const char* part : {"ready", "stop", "speculation"})
        CHECK(known_to_validator(head + "services: {s: {" + part + ": {" + odd + "}}}\n") ==
              in_schema(std::string("/$defs/") + part));
    CHECK(known_to_validator(head + "services: {s: {environment: {X: {" + odd + "}}}}\n") ==
          in_schema("/$defs/secret"));
    for (const ToolDescription& tool : tool_descriptions()) {
        const std::string name(tool.name);
        CHECK(known_to_validator(head + "tools: {t: {tool: " + name + ", " + odd + "}}\n") ==
              in_schema("/$defs/tool_" + name));
    }
}

TEST_CASE("the schema names every tool, what each demands, and the members of its lists") {
    std::set<std::string> names;
    for (const ToolDescription& tool : tool_descriptions()) {
        names.emplace(tool.name);
        const Json& in = schema().at("$defs").at("tool_" + std::string(tool.name));
        std::set<std::string> required{"tool", "role"}, written;
        for (const Json& key : in.at("required")) written.insert(key.get<std::string>());
        for (const OptionSpec& option : tool.options) {
            if (option.required) required.emplace(option.name);
            const Json& property = in.at("properties").at(std::string(option.name));
            CHECK(property.at("description").get<std::string>().starts_with(std::string(option.help)));
            if (option.type != OptionType::objects) continue;
            std::set<std::string> members;
            for (const OptionSpec& member : option.members) members.emplace(member.name);
            CHECK(keys_of(property.at("items").at("properties")) == members);
        }
        CHECK(written == required);
    }
    std::set<std::string> in_enum;
    for (const Json& name : schema().at(Json::json_pointer("/$defs/tool/properties/tool/anyOf/0/enum")))
        in_enum.insert(name.get<std::string>());
    CHECK(in_enum == names);
}

TEST_CASE("every object of the schema is closed and every property is explained") {
    const auto walk = [](const auto& self, const Json& node) -> void {
        if (!node.is_structured()) return;
        if (node.is_object() && node.contains("properties") && node.value("type", "") == "object" &&
            !node.contains("allOf")) {
            CHECK(node.contains("additionalProperties"));
            for (const auto& [key, property] : node.at("properties").items()) {
                CAPTURE(key);
                CHECK((property.contains("description") || property.contains("$ref")));
            }
        }
        for (const Json& inner : node) self(self, inner);
    };
    walk(walk, schema());
}

TEST_CASE("the shipped experiments are good files") {
    for (const char* name : {"web-scaling", "database-round-trip", "context-switch-cost", "sched-yield"}) {
        CAPTURE(name);
        const std::string text = content(std::string("deploy/experiments/") + name + ".yaml");
        CHECK(text.starts_with("# ")); // says what it answers and needs
        const Experiment e = parsed(text);
        const Result<Plan> plan = expand(e);
        REQUIRE(plan);
        const RoleGrants grants{{{"app", "0-1"}, {"db", "2"}, {"load", "3"}, {"monitor", "4"}}, {}};
        for (const Cell& cell : plan->cells) CHECK(resolve(e, cell, 1, grants));
    }
}
