#include "common/placement/profile.hpp"

#include <algorithm>
#include <initializer_list>

namespace perfrig {

namespace {

Error wrong(const std::string& place, std::string why, std::string remedy = {}) {
    return fail(ErrorKind::bad_input, "read", place, std::move(why), std::move(remedy));
}

// Levenshtein distance, for the suggestion beside an unknown member.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

Result<void> only(const Json& object, const std::string& place, std::initializer_list<std::string_view> known) {
    if (!object.is_object()) return wrong(place, "it must be an object");
    for (const auto& [key, value] : object.items()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        if (key.size() > 64) return wrong(place, "an unknown member of " + std::to_string(key.size()) + " bytes");
        const auto best =
            std::min_element(known.begin(), known.end(), [&key = key](std::string_view a, std::string_view b) {
                return distance(key, a) < distance(key, b);
            });
        std::string remedy = distance(key, *best) <= 2 ? "did you mean '" + std::string(*best) + "'?" : "";
        return wrong(place, "unknown member '" + key + "'", std::move(remedy));
    }
    return {};
}

bool is_role_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
}

Result<std::map<std::string, CpuList>> read_lists(const Json& object, const std::string& place) {
    std::map<std::string, CpuList> out;
    if (!object.is_object()) return wrong(place, "it must be an object of role to list");
    for (const auto& [role, value] : object.items()) {
        const std::string here = place + "." + role.substr(0, 64);
        if (!is_role_name(role))
            return wrong(here, "not a role name", "use letters, digits, '-', '_' and '.', at most 64");
        std::string text;
        if (value.is_string())
            text = value.get<std::string>();
        else if (value.is_number_unsigned())
            text = std::to_string(value.get<std::uint64_t>()); // YAML's `monitor: 10`
        else
            return wrong(here, "it must be a list such as \"0-3,8\"");
        auto list = CpuList::parse(text);
        if (!list) return wrong(here, list.error().text());
        if (list->empty()) return wrong(here, "the list is empty", "name at least one, or leave the role out");
        out.emplace(role, *std::move(list));
    }
    return out;
}

Result<std::set<std::string>> read_names(const Json& array, const std::string& place) {
    std::set<std::string> out;
    if (!array.is_array()) return wrong(place, "it must be a list of names");
    for (const Json& item : array) {
        if (!item.is_string() || item.get<std::string>().empty()) return wrong(place, "every item must be a name");
        if (!out.insert(item.get<std::string>()).second)
            return wrong(place, "'" + item.get<std::string>() + "' is named twice");
    }
    return out;
}

Result<std::vector<std::set<std::string>>> read_share(const Json& array, const std::map<std::string, CpuList>& roles) {
    const std::string place = "the profile, share";
    std::vector<std::set<std::string>> out;
    if (!array.is_array())
        return wrong(place, "it must be a list of groups, each a list of roles", "write [[db, load]]");
    for (const Json& group : array) {
        PERFRIG_TRY(auto names, read_names(group, place));
        if (names.size() < 2) return wrong(place, "a group needs at least two roles");
        for (const std::string& name : names)
            if (!roles.contains(name))
                return wrong(place, "role '" + name + "' has no CPUs in `roles`", "add it to `roles`");
        out.push_back(std::move(names));
    }
    return out;
}

Result<std::int64_t> read_limit(const Json& limits, const char* key, std::int64_t fallback, std::int64_t least,
                                std::int64_t most) {
    if (!limits.contains(key)) return fallback;
    JsonReader in(limits, "the profile, limits");
    const std::int64_t value = in.integer(key);
    PERFRIG_CHECK(in.finish());
    if (value < least || value > most)
        return wrong("the profile, limits." + std::string(key), std::to_string(value) + " is out of range",
                     "choose " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

Result<ProfileLimits> read_limits(const Json& json) {
    PERFRIG_CHECK(only(json, "the profile, limits", {"run_seconds", "log_bytes", "artifact_bytes", "processes"}));
    ProfileLimits l;
    PERFRIG_TRY(l.run_seconds, read_limit(json, "run_seconds", l.run_seconds, 1, 7LL * 24 * 3600));
    PERFRIG_TRY(l.log_bytes, read_limit(json, "log_bytes", l.log_bytes, 4096, 16LL << 30));
    PERFRIG_TRY(l.artifact_bytes, read_limit(json, "artifact_bytes", l.artifact_bytes, 0, 1LL << 40));
    PERFRIG_TRY(l.processes, read_limit(json, "processes", l.processes, 1, 1'000'000));
    return l;
}

} // namespace

Result<Profile> profile_from_json(const Json& json) {
    Profile p;
    PERFRIG_CHECK(only(json, "the profile", {"roles", "memory", "share", "limits", "allow"}));
    if (json.contains("roles")) {
        PERFRIG_TRY(p.roles, read_lists(json["roles"], "the profile, roles"));
    }
    if (json.contains("memory")) {
        PERFRIG_TRY(p.memory, read_lists(json["memory"], "the profile, memory"));
        for (const auto& [role, nodes] : p.memory)
            if (!p.roles.contains(role))
                return wrong("the profile, memory." + role, "the role has no CPUs in `roles`", "add it to `roles`");
    }
    if (json.contains("share")) {
        PERFRIG_TRY(p.share, read_share(json["share"], p.roles));
    }
    if (json.contains("limits")) {
        PERFRIG_TRY(p.limits, read_limits(json["limits"]));
    }
    if (json.contains("allow")) {
        const Json& allow = json["allow"];
        PERFRIG_CHECK(only(allow, "the profile, allow", {"settings", "kernel_args"}));
        if (allow.contains("settings")) {
            PERFRIG_TRY(p.allow.settings, read_names(allow["settings"], "the profile, allow.settings"));
        }
        if (allow.contains("kernel_args")) {
            PERFRIG_TRY(p.allow.kernel_args, read_names(allow["kernel_args"], "the profile, allow.kernel_args"));
        }
    }
    return p;
}

Json to_json(const Profile& p) {
    const auto lists = [](const std::map<std::string, CpuList>& from) {
        Json out = Json::object();
        for (const auto& [role, list] : from) out[role] = list.text();
        return out;
    };
    return {{"roles", lists(p.roles)},
            {"memory", lists(p.memory)},
            {"share", p.share},
            {"limits",
             {{"run_seconds", p.limits.run_seconds},
              {"log_bytes", p.limits.log_bytes},
              {"artifact_bytes", p.limits.artifact_bytes},
              {"processes", p.limits.processes}}},
            {"allow", {{"settings", p.allow.settings}, {"kernel_args", p.allow.kernel_args}}}};
}

} // namespace perfrig
