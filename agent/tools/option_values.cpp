#include "agent/tools/option_values.hpp"

#include "agent/tools/text.hpp"
#include "common/base/json.hpp"
#include "common/base/units.hpp"

namespace perfrig {

bool OptionValues::has(const char* name) const { return options_.contains(name); }

std::optional<std::string> OptionValues::text(const char* name) const {
    const auto found = options_.find(name);
    if (found == options_.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
}

std::optional<double> OptionValues::number(const char* name) const {
    const auto found = options_.find(name);
    if (found == options_.end()) return std::nullopt;
    if (found->is_string()) return text::number(found->get_ref<const std::string&>());
    return found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::int64_t OptionValues::integer(const char* name, std::int64_t fallback) const {
    const auto value = number(name);
    return value ? static_cast<std::int64_t>(*value) : fallback;
}

bool OptionValues::boolean(const char* name, bool fallback) const {
    const auto found = options_.find(name);
    if (found == options_.end()) return fallback;
    return found->is_boolean() ? found->get<bool>() : *found == nlohmann::json("true");
}

std::optional<Nanoseconds> OptionValues::duration(const char* name) const {
    const auto written = text(name);
    if (!written) return std::nullopt;
    const auto time = parse_duration(*written);
    return time ? std::optional(*time) : std::nullopt;
}

std::vector<std::string> OptionValues::texts(const char* name) const {
    std::vector<std::string> result;
    const auto found = options_.find(name);
    if (found == options_.end()) return result;
    if (found->is_string())
        result.push_back(found->get<std::string>());
    else
        for (const auto& item : *found) result.push_back(item.get<std::string>());
    return result;
}

std::map<std::string, std::string> OptionValues::text_map(const char* name) const {
    std::map<std::string, std::string> result;
    if (const auto found = options_.find(name); found != options_.end())
        for (const auto& [key, value] : found->items()) result.emplace(key, value.get<std::string>());
    return result;
}

} // namespace perfrig
