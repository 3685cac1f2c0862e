#include "common/base/json.hpp"

namespace perfrig {

namespace {
constexpr int deepest_nesting = 64;
const Json empty_object = Json::object();
const Json empty_array = Json::array();
const Json null_value;

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// nlohmann's parser recurses when values are destroyed and when they are printed: bound the depth at the door.
bool too_deep(std::string_view text) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest_nesting) return true;
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return false;
}
} // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
    if (too_deep(text))
        return fail(ErrorKind::bad_input, "parse", std::string(what), "nested deeper than 64 levels", "flatten it");
    try {
        return Json::parse(text.begin(), text.end());
    } catch (const Json::exception& e) { // the library reports by exception alone
        std::string why =
            e.what(); // "[json.exception.parse_error.101] parse error at line 1, ...": its name says nothing
        if (const auto name_end = why.find("] "); why.starts_with("[json.exception") && name_end != std::string::npos)
            why.erase(0, name_end + 2);
        return fail(ErrorKind::bad_input, "parse", std::string(what), std::move(why), "send valid JSON in UTF-8");
    }
}

bool holds_nul(const Json& json) {
    if (json.is_string()) return has_nul(json.get_ref<const std::string&>());
    if (json.is_object()) {
        for (const auto& [key, value] : json.items())
            if (has_nul(key) || holds_nul(value)) return true;
    } else if (json.is_array()) {
        for (const Json& item : json)
            if (holds_nul(item)) return true;
    }
    return false;
}

std::string canonical_json(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

JsonReader::JsonReader(const Json& object, std::string place)
    : object_(object.is_object() ? object : empty_object), place_(std::move(place)) {
    if (!object.is_object()) fault("it must be an object");
}

const Json* JsonReader::member(const char* key, const char* wanted, bool required, bool (*is)(const Json&)) {
    const auto found = object_.find(key);
    if (found == object_.end() || (found->is_null() && !required)) {
        if (required) fault("member '" + std::string(key) + "' is missing");
        return nullptr;
    }
    if (!is(*found)) {
        fault("member '" + std::string(key) + "' must be " + wanted);
        return nullptr;
    }
    return &*found;
}

namespace {
bool is_string(const Json& j) { return j.is_string(); }
bool is_integer(const Json& j) {
    return j.is_number_integer() &&
           (!j.is_number_unsigned() || j.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
}
bool is_unsigned(const Json& j) {
    return j.is_number_unsigned() || (j.is_number_integer() && j.get<std::int64_t>() >= 0);
}
bool is_number(const Json& j) { return j.is_number(); }
bool is_boolean(const Json& j) { return j.is_boolean(); }
bool is_object(const Json& j) { return j.is_object(); }
bool is_array(const Json& j) { return j.is_array(); }
} // namespace

std::string JsonReader::string(const char* key) {
    const Json* m = member(key, "a string", true, is_string);
    return m ? m->get<std::string>() : std::string();
}
std::string JsonReader::string_or(const char* key, std::string fallback) {
    const Json* m = member(key, "a string", false, is_string);
    return m ? m->get<std::string>() : fallback;
}
std::int64_t JsonReader::integer(const char* key) {
    const Json* m = member(key, "an integer", true, is_integer);
    return m ? m->get<std::int64_t>() : 0;
}
std::int64_t JsonReader::integer_or(const char* key, std::int64_t fallback) {
    const Json* m = member(key, "an integer", false, is_integer);
    return m ? m->get<std::int64_t>() : fallback;
}
std::uint64_t JsonReader::unsigned_integer(const char* key) {
    const Json* m = member(key, "an integer that is not negative", true, is_unsigned);
    return m ? m->get<std::uint64_t>() : 0;
}
double JsonReader::number(const char* key) {
    const Json* m = member(key, "a number", true, is_number);
    return m ? m->get<double>() : 0;
}
double JsonReader::number_or(const char* key, double fallback) {
    const Json* m = member(key, "a number", false, is_number);
    return m ? m->get<double>() : fallback;
}
bool JsonReader::boolean_or(const char* key, bool fallback) {
    const Json* m = member(key, "true or false", false, is_boolean);
    return m ? m->get<bool>() : fallback;
}
const Json& JsonReader::object(const char* key) {
    const Json* m = member(key, "an object", true, is_object);
    return m ? *m : empty_object;
}
const Json& JsonReader::array(const char* key) {
    const Json* m = member(key, "an array", true, is_array);
    return m ? *m : empty_array;
}
const Json& JsonReader::any_or_null(const char* key) {
    const auto found = object_.find(key);
    return found == object_.end() ? null_value : *found;
}
bool JsonReader::has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

void JsonReader::fault(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
}

Result<void> JsonReader::finish() const {
    if (fault_.empty()) return {};
    return fail(ErrorKind::bad_input, "read", place_, fault_);
}

} // namespace perfrig
