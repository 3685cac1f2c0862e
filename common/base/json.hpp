// JSON as values. Reading untrusted JSON goes through JsonReader, which never throws and names the place.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace perfrig {

using Json = nlohmann::json; // keys sorted: the same value always prints the same text

// `what` names the document in the error ("the request body"). Refuses nesting deeper than 64.
Result<Json> parse_json(std::string_view text, std::string_view what);

// A NUL byte in any string or key of the tree: PostgreSQL's text can't hold one.
bool holds_nul(const Json& json);

// The text that is hashed: keys sorted, no white space, shortest round-trip numbers.
// (RFC 8785 for everything that perfrig writes: integers up to 2^53, doubles, UTF-8 strings.)
std::string canonical_json(const Json& value);

// Reads an object's members with types checked; the first fault sticks and finish() returns it.
//   JsonReader in(object, "hello"); m.epoch = in.integer("epoch"); PERFRIG_CHECK(in.finish());
class JsonReader {
  public:
    JsonReader(const Json& object, std::string place);

    std::string string(const char* key);
    std::string string_or(const char* key, std::string fallback);
    std::int64_t integer(const char* key);
    std::int64_t integer_or(const char* key, std::int64_t fallback);
    std::uint64_t unsigned_integer(const char* key);
    double number(const char* key);
    double number_or(const char* key, double fallback);
    bool boolean_or(const char* key, bool fallback);
    const Json& object(const char* key); // an empty object on fault
    const Json& array(const char* key);  // an empty array on fault
    const Json& any_or_null(const char* key);
    bool has(const char* key) const;
    void fault(std::string why); // for checks of the caller's own

    Result<void> finish() const;

  private:
    const Json* member(const char* key, const char* wanted, bool required, bool (*is)(const Json&));
    const Json& object_;
    std::string place_;
    std::string fault_;
};

} // namespace perfrig
