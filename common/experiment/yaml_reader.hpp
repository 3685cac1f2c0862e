// Typed reading of a YamlNode that collects faults instead of failing at the first.
//
//   std::vector<Fault> faults;
//   YamlReader in(tree, "", faults);
//   config.port = in.integer("port", 7117, 1, 65535);
//   YamlReader db = in.map("database");
//   config.connection = db.text("connection", "");
//   db.finish(); in.finish();   // unknown keys become faults, with the nearest known key
//
// A getter with a fallback is optional; one without is required. A faulty value is reported and reads as the fallback
// (or as an empty value), so that the reading goes on. A key that is there with a null value counts as missing.
#pragma once

#include "common/base/units.hpp"
#include "common/experiment/yaml_tree.hpp"

#include <cstdint>
#include <map>

namespace perfrig {

class YamlReader {
  public:
    // Anything but a map is a fault (null reads as an empty map). `path` is the node's own ("services.nginx").
    // The node and the vector must outlive the reader.
    YamlReader(const YamlNode& node, std::string path, std::vector<Fault>& faults);

    std::string text(const char* key);
    std::string text(const char* key, std::string fallback);
    std::string one_of(const char* key, std::string fallback, const std::vector<std::string>& choices);
    bool boolean(const char* key, bool fallback); // true or false alone, never yes or off
    std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t least, std::int64_t most);
    double number(const char* key, double fallback, double least, double most);
    Nanoseconds duration(const char* key, Nanoseconds fallback);
    std::uint64_t size_bytes(const char* key, std::uint64_t fallback);
    std::vector<std::string> texts(const char* key);              // a list of scalars; missing: empty
    std::map<std::string, std::string> text_map(const char* key); // a map of scalars; missing: empty
    YamlReader map(const char* key);                              // missing: an empty one
    const YamlNode* node(const char* key);                        // nullptr: missing or null
    const YamlNode& required(const char* key);                    // a null node on fault

    bool has(std::string_view key) const;
    void know(const char* key); // a key that is read some other way
    void fault(const YamlNode& at, std::string path, std::string message, std::string remedy = {});
    void fault_at(const char* key, std::string message, std::string remedy = {}); // at the key's value, or at the map
    void finish();                                                                // reports unknown keys

    const YamlNode& self() const { return *node_; }
    const std::string& path() const { return path_; }
    std::string path_of(std::string_view key) const; // "services.nginx" + "ready" -> "services.nginx.ready"

  private:
    const YamlNode* scalar(const char* key, bool required);
    const YamlNode* node_;
    std::string path_;
    std::vector<Fault>* faults_;
    std::vector<std::string> known_;
};

} // namespace perfrig
