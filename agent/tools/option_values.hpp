// Reads options that check_tool_options has already accepted: no faults left to report, only forms to unify
// (a level of a factor may have kept its text: "50" is 50).
#pragma once

#include "common/base/clock.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

class OptionValues {
  public:
    explicit OptionValues(const nlohmann::json& options) : options_(options) {}

    bool has(const char* name) const;
    std::optional<std::string> text(const char* name) const;
    std::optional<double> number(const char* name) const;
    std::int64_t integer(const char* name, std::int64_t fallback) const;
    bool boolean(const char* name, bool fallback) const;
    std::optional<Nanoseconds> duration(const char* name) const;
    std::vector<std::string> texts(const char* name) const; // a list of strings, or one string as a list
    std::map<std::string, std::string> text_map(const char* name) const;

  private:
    const nlohmann::json& options_;
};

} // namespace perfrig
