#include "controller/db/sql.hpp"

#include "common/base/hash.hpp"

namespace perfrig::db {

Json to_json(const std::map<std::string, std::string>& map) {
    Json out = Json::object();
    for (const auto& [key, value] : map) out[key] = value;
    return out;
}

std::map<std::string, std::string> string_map(const Json& object) {
    std::map<std::string, std::string> out;
    if (!object.is_object()) return out;
    for (const auto& [key, value] : object.items())
        if (value.is_string()) out[key] = value.get<std::string>();
    return out;
}

std::string labels_hash(const std::map<std::string, std::string>& labels) {
    return sha256_hex(canonical_json(to_json(labels)));
}

} // namespace perfrig::db
