#include "common/experiment/yaml_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace perfrig {

namespace {

const YamlNode nothing;

const char* kind_name(const YamlNode& node) {
    switch (node.kind) {
    case YamlNode::Kind::null: return "nothing";
    case YamlNode::Kind::scalar: return "a single value";
    case YamlNode::Kind::list: return "a list";
    case YamlNode::Kind::map: return "a map";
    }
    return "";
}

std::string shortened(const std::string& text) { return text.size() <= 60 ? text : text.substr(0, 57) + "..."; }

std::string printed(double number) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    return error == std::errc() ? std::string(text, end) : "?";
}

} // namespace

YamlReader::YamlReader(const YamlNode& node, std::string path, std::vector<Fault>& faults)
    : node_(&node), path_(std::move(path)), faults_(&faults) {
    if (!node.is_map() && !node.is_null())
        fault(node, path_,
              (path_.empty() ? std::string("the document") : path_) + " must be a map, not " + kind_name(node),
              "write KEY: VALUE lines");
}

std::string YamlReader::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void YamlReader::fault(const YamlNode& at, std::string path, std::string message, std::string remedy) {
    faults_->push_back({at.mark.line, at.mark.column, std::move(path), std::move(message), std::move(remedy)});
}

void YamlReader::fault_at(const char* key, std::string message, std::string remedy) {
    const YamlNode* value = node_->find(key);
    fault(value ? *value : *node_, path_of(key), std::move(message), std::move(remedy));
}

bool YamlReader::has(std::string_view key) const {
    const YamlNode* value = node_->find(key);
    return value && !value->is_null();
}

void YamlReader::know(const char* key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
}

const YamlNode* YamlReader::node(const char* key) {
    know(key);
    const YamlNode* value = node_->find(key);
    return value && !value->is_null() ? value : nullptr;
}

const YamlNode& YamlReader::required(const char* key) {
    if (const YamlNode* value = node(key)) return *value;
    if (!node_->is_map() && !node_->is_null()) return nothing; // said already
    const YamlNode* empty = node_->find(key);
    if (empty)
        fault(*empty, path_of(key), path_of(key) + " has no value", "give it one");
    else
        fault(*node_, path_of(key), path_of(key) + " is missing", "add it");
    return nothing;
}

const YamlNode* YamlReader::scalar(const char* key, bool is_required) {
    const YamlNode* value = is_required ? &required(key) : node(key);
    if (!value || value->is_null()) return nullptr;
    if (value->is_scalar()) return value;
    fault(*value, path_of(key), path_of(key) + " must be a single value, not " + kind_name(*value), "");
    return nullptr;
}

std::string YamlReader::text(const char* key) {
    const YamlNode* value = scalar(key, true);
    if (value && value->text.empty()) fault(*value, path_of(key), path_of(key) + " is empty", "give it a value");
    return value ? value->text : std::string();
}

std::string YamlReader::text(const char* key, std::string fallback) {
    const YamlNode* value = scalar(key, false);
    return value ? value->text : std::move(fallback);
}

std::string YamlReader::one_of(const char* key, std::string fallback, const std::vector<std::string>& choices) {
    const YamlNode* value = scalar(key, false);
    if (!value || std::find(choices.begin(), choices.end(), value->text) != choices.end())
        return value ? value->text : std::move(fallback);
    std::string all;
    for (const std::string& choice : choices) all += (all.empty() ? "" : ", ") + choice;
    const std::string near = nearest_word(value->text, choices);
    fault(*value, path_of(key), path_of(key) + " can't be '" + shortened(value->text) + "'",
          near.empty() ? "one of " + all : "did you mean '" + near + "'? One of " + all);
    return fallback;
}

bool YamlReader::boolean(const char* key, bool fallback) {
    const YamlNode* value = scalar(key, false);
    if (!value) return fallback;
    if (value->text == "true" || value->text == "false") return value->text == "true";
    fault(*value, path_of(key), path_of(key) + " must be true or false, not '" + shortened(value->text) + "'",
          "yes, no, on and off are plain text here");
    return fallback;
}

std::int64_t YamlReader::integer(const char* key, std::int64_t fallback, std::int64_t least, std::int64_t most) {
    const YamlNode* value = scalar(key, false);
    if (!value) return fallback;
    std::int64_t number = 0;
    const char* end_of_text = value->text.data() + value->text.size();
    const auto [end, error] = std::from_chars(value->text.data(), end_of_text, number);
    const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
    if (error == std::errc::invalid_argument || end != end_of_text)
        fault(*value, path_of(key), path_of(key) + " must be a whole number, not '" + shortened(value->text) + "'",
              range);
    else if (error != std::errc() || number < least || number > most)
        fault(*value, path_of(key), path_of(key) + " is out of range: " + shortened(value->text), range);
    else
        return number;
    return fallback;
}

double YamlReader::number(const char* key, double fallback, double least, double most) {
    const YamlNode* value = scalar(key, false);
    if (!value) return fallback;
    double number = 0;
    const char* end_of_text = value->text.data() + value->text.size();
    const auto [end, error] = std::from_chars(value->text.data(), end_of_text, number);
    const std::string range = "from " + printed(least) + " to " + printed(most);
    if (error != std::errc() || end != end_of_text || !std::isfinite(number))
        fault(*value, path_of(key), path_of(key) + " must be a number, not '" + shortened(value->text) + "'", range);
    else if (number < least || number > most)
        fault(*value, path_of(key), path_of(key) + " is out of range: " + shortened(value->text), range);
    else
        return number;
    return fallback;
}

Nanoseconds YamlReader::duration(const char* key, Nanoseconds fallback) {
    const YamlNode* value = scalar(key, false);
    if (!value) return fallback;
    const Result<Nanoseconds> time = parse_duration(value->text);
    if (time) return *time;
    fault(*value, path_of(key), path_of(key) + " is no duration: '" + shortened(value->text) + "': " + time.error().why,
          time.error().remedy);
    return fallback;
}

std::uint64_t YamlReader::size_bytes(const char* key, std::uint64_t fallback) {
    const YamlNode* value = scalar(key, false);
    if (!value) return fallback;
    const Result<std::uint64_t> size = parse_size(value->text);
    if (size) return *size;
    fault(*value, path_of(key), path_of(key) + " is no size: '" + shortened(value->text) + "': " + size.error().why,
          size.error().remedy);
    return fallback;
}

std::vector<std::string> YamlReader::texts(const char* key) {
    std::vector<std::string> out;
    const YamlNode* list = node(key);
    if (!list) return out;
    if (!list->is_list()) {
        fault(*list, path_of(key), path_of(key) + " must be a list, not " + kind_name(*list), "write [a, b]");
        return out;
    }
    for (std::size_t i = 0; i < list->items.size(); ++i) {
        const YamlNode& item = list->items[i];
        if (item.is_scalar())
            out.push_back(item.text);
        else
            fault(item, path_of(key) + "." + std::to_string(i),
                  path_of(key) + " must hold single values, not " + kind_name(item), "");
    }
    return out;
}

std::map<std::string, std::string> YamlReader::text_map(const char* key) {
    std::map<std::string, std::string> out;
    const YamlNode* map = node(key);
    if (!map) return out;
    if (!map->is_map()) {
        fault(*map, path_of(key), path_of(key) + " must be a map, not " + kind_name(*map), "write KEY: VALUE lines");
        return out;
    }
    for (const YamlEntry& entry : map->entries) {
        const std::string where = path_of(key) + "." + entry.key;
        if (entry.value.is_scalar())
            out[entry.key] = entry.value.text;
        else
            fault(entry.value, where, where + " must be a single value, not " + kind_name(entry.value), "");
    }
    return out;
}

YamlReader YamlReader::map(const char* key) {
    const YamlNode* value = node(key);
    return {value ? *value : nothing, path_of(key), *faults_};
}

void YamlReader::finish() {
    for (const YamlEntry& entry : node_->entries) {
        if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
        const std::string near = nearest_word(entry.key, known_);
        std::string all;
        for (const std::string& key : known_) all += (all.empty() ? "" : ", ") + key;
        faults_->push_back({entry.key_mark.line, entry.key_mark.column, path_of(entry.key),
                            "unknown key '" + shortened(entry.key) + "'" + (path_.empty() ? "" : " in " + path_),
                            near.empty() ? "known here: " + all : "did you mean '" + near + "'?"});
    }
}

} // namespace perfrig
