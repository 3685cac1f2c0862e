#include "controller/api/openapi.hpp"

#include "schemas/embedded.hpp"

#include <charconv>
#include <stdexcept>
#include <yaml-cpp/yaml.h>

namespace perfrig::api {

namespace {

Json plain_scalar(const std::string& text) {
    if (text == "null" || text == "~" || text.empty()) return nullptr;
    if (text == "true") return true;
    if (text == "false") return false;
    const auto* end = text.data() + text.size();
    std::int64_t whole = 0;
    if (auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc() && at == end) return whole;
    double number = 0;
    if (auto [at, error] = std::from_chars(text.data(), end, number); error == std::errc() && at == end) return number;
    return text;
}

Json convert(const YAML::Node& node) {
    switch (node.Type()) {
    case YAML::NodeType::Map: {
        Json object = Json::object();
        for (const auto& member : node) {
            const auto key = member.first.as<std::string>();
            if (object.contains(key))
                throw YAML::ParserException(member.first.Mark(), "the key " + key + " comes twice");
            object[key] = convert(member.second);
        }
        return object;
    }
    case YAML::NodeType::Sequence: {
        Json array = Json::array();
        for (const auto& item : node) array.push_back(convert(item));
        return array;
    }
    case YAML::NodeType::Scalar: return node.Tag() == "!" ? Json(node.Scalar()) : plain_scalar(node.Scalar());
    default: return nullptr;
    }
}

} // namespace

Result<Json> yaml_to_json(std::string_view yaml, std::string_view what) {
    try {
        return convert(YAML::Load(std::string(yaml)));
    } catch (const YAML::Exception& e) {
        const auto place = e.mark.is_null() ? std::string(what)
                                            : std::string(what) + ":" + std::to_string(e.mark.line + 1) + ":" +
                                                  std::to_string(e.mark.column + 1);
        return fail(ErrorKind::bad_input, "read the YAML of", place, e.msg);
    }
}

Json openapi_document() {
    for (const auto& file : schemas::files())
        if (file.name == "openapi.yaml") return yaml_to_json(file.content, file.name).value();
    throw std::logic_error("openapi.yaml is not embedded");
}

} // namespace perfrig::api
