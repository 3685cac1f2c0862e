#include "common/protocol/fields.hpp"

#include "common/base/printable.hpp"

namespace perfrig::protocol {

namespace {
constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Cuts at a character's border and says so.
std::string cut(std::string text, std::size_t most) {
    static constexpr std::string_view mark = " [cut]";
    if (text.size() <= most) return text;
    text.resize(beginning_of(text, most - mark.size()).size());
    return text += mark;
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }
} // namespace

std::string presentable(std::string_view text, std::size_t most) {
    // nlohmann's printer is the judge of UTF-8; only a text that it would have to change takes the long way.
    const std::string printed = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
    std::string valid = Json::parse(printed).get<std::string>();
    for (std::size_t at = 0; (at = valid.find('\0', at)) != std::string::npos; at += replacement.size())
        valid.replace(at, 1, replacement);
    return cut(std::move(valid), most);
}

Json presentable(const Json& json) {
    constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
    if (json.is_string()) return presentable(json.get_ref<const std::string&>(), no_bound);
    if (json.is_array()) {
        Json out = Json::array();
        for (const Json& item : json) out.push_back(presentable(item));
        return out;
    }
    if (json.is_object()) {
        Json out = Json::object();
        for (const auto& [key, value] : json.items()) out[presentable(key, most_name_bytes)] = presentable(value);
        return out;
    }
    return json;
}

void Writer::text_map(const char* key, const std::map<std::string, std::string>& value) {
    Json out = Json::object();
    for (const auto& [name, text] : value)
        if (out.size() < most_map_entries) out[presentable(name, most_name_bytes)] = presentable(text, most_text_bytes);
    out_[key] = std::move(out);
}

void Writer::text_list(const char* key, const std::vector<std::string>& value) {
    Json out = Json::array();
    for (const std::string& text : value) out.push_back(presentable(text, most_text_bytes));
    out_[key] = std::move(out);
}

Reader::Reader(const Json& in, std::string place, std::initializer_list<const char*> known)
    : in_(in), place_(std::move(place)) {
    for (const char* key : known) seen_.insert(key);
    if (!in.is_object()) fault_ = place_ + " must be an object";
}

void Reader::fault(const std::string& key, const std::string& why) {
    if (fault_.empty()) fault_ = place_ + "." + key + " " + why;
}

void Reader::adopt(Reader& inner) {
    if (const auto ended = inner.finish(); !ended && fault_.empty()) fault_ = ended.error().why;
}

const Json* Reader::member(const char* key, Is is, const char* wanted) {
    if (!fault_.empty()) return nullptr;
    seen_.insert(key);
    const auto found = in_.find(key);
    if (found == in_.end())
        fault(key, "is missing");
    else if (!((*found).*is)())
        fault(key, std::string("must be ") + wanted);
    else
        return &*found;
    return nullptr;
}

std::int64_t Reader::bounded(const char* key, std::int64_t least, std::int64_t most) {
    const Json* json = member(key, &Json::is_number_integer, "an integer");
    if (!json) return 0;
    const bool too_big =
        json->is_number_unsigned() &&
        json->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t value = too_big ? 0 : json->get<std::int64_t>();
    if (too_big || value < least || value > most) {
        fault(key, "must be " + std::to_string(least) + " to " + std::to_string(most));
        return 0;
    }
    return value;
}

void Reader::optional_integer(const char* key, std::optional<std::int64_t>& value) {
    value.reset();
    const auto found = in_.is_object() ? in_.find(key) : in_.end();
    if (found != in_.end() && found->is_null())
        seen_.insert(key);
    else
        value = bounded(key, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

void Reader::optional_real(const char* key, std::optional<double>& value) {
    value.reset();
    const auto found = in_.is_object() ? in_.find(key) : in_.end();
    if (found != in_.end() && found->is_null())
        seen_.insert(key);
    else if (const Json* json = member(key, &Json::is_number, "a number or null"))
        value = json->get<double>();
}

void Reader::boolean(const char* key, bool& value) {
    if (const Json* json = member(key, &Json::is_boolean, "true or false")) value = json->get<bool>();
}

std::string Reader::string(const char* key, std::size_t most) {
    const Json* json = member(key, &Json::is_string, "a string");
    if (!json) return {};
    const std::string& text = json->get_ref<const std::string&>();
    if (text.size() > most)
        fault(key, "is longer than " + std::to_string(most) + " bytes");
    else if (has_nul(text))
        fault(key, "holds a NUL byte");
    else
        return text;
    return {};
}

void Reader::word(const char* key, std::string& value, std::initializer_list<const char*> allowed) {
    value = string(key, most_name_bytes);
    if (!fault_.empty()) return;
    std::string words;
    for (const char* one : allowed) {
        if (value == one) return;
        words += words.empty() ? one : std::string(", ") + one;
    }
    fault(key, "must be one of " + words);
}

void Reader::object(const char* key, Json& value) {
    const Json* json = member(key, &Json::is_object, "an object");
    if (!json) return;
    if (holds_nul(*json)) return fault(key, "holds a NUL byte");
    value = *json;
}

void Reader::anything(const char* key, Json& value) {
    if (!fault_.empty()) return;
    seen_.insert(key);
    const auto found = in_.find(key);
    if (found == in_.end()) return fault(key, "is missing");
    value = *found;
}

void Reader::text_map(const char* key, std::map<std::string, std::string>& value) {
    const Json* json = member(key, &Json::is_object, "an object of strings");
    if (!json) return;
    if (json->size() > most_map_entries) return fault(key, "has too many members");
    value.clear();
    for (const auto& [name, text] : json->items()) {
        if (!text.is_string()) return fault(key, "must be an object of strings");
        const std::string& words = text.get_ref<const std::string&>();
        if (name.size() > most_name_bytes || words.size() > most_text_bytes)
            return fault(key, "has a text that is too long");
        if (has_nul(name) || has_nul(words)) return fault(key, "holds a NUL byte");
        value[name] = words;
    }
}

void Reader::text_list(const char* key, std::vector<std::string>& value) {
    const Json* json = member(key, &Json::is_array, "an array of strings");
    if (!json) return;
    if (json->size() > most_map_entries) return fault(key, "has too many items");
    value.clear();
    for (const Json& item : *json) {
        if (!item.is_string()) return fault(key, "must be an array of strings");
        const std::string& words = item.get_ref<const std::string&>();
        if (words.size() > most_text_bytes || has_nul(words))
            return fault(key, "has a text that is too long or holds a NUL byte");
        value.push_back(words);
    }
}

Result<void> Reader::finish() {
    if (fault_.empty())
        for (const auto& [key, value] : in_.items())
            if (!seen_.contains(key)) {
                fault_ = place_ + " has an unknown member '" + presentable(key, most_name_bytes) + "'";
                break;
            }
    if (fault_.empty()) return {};
    return fail(ErrorKind::bad_input, "read", place_, fault_);
}

} // namespace perfrig::protocol
