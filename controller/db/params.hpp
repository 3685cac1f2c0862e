// Parameters of a statement ($1, $2, ...) in the forms that the server takes: text for scalars, binary for bytes and
// arrays (arrays feed unnest, which is how many rows are written in one statement).
#pragma once

#include "common/base/json.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig::db {

struct Param {
    bool null = false;
    bool binary = false;
    unsigned type = 0; // the server's type id; 0: inferred from the statement
    std::string value;

    Param(std::int64_t number) : value(std::to_string(number)) {}
    Param(int number) : value(std::to_string(number)) {}
    Param(bool flag) : value(flag ? "t" : "f") {}
    Param(double number);
    // PostgreSQL's text and jsonb can't hold NUL characters: each becomes U+FFFD.
    Param(std::string text);
    Param(std::string_view text) : Param(std::string(text)) {}
    Param(const char* text) : Param(std::string(text)) {}
    Param(const Json& json); // for $1::jsonb
    Param(std::nullopt_t) : null(true) {}
    template <class T> Param(const std::optional<T>& maybe) : Param(maybe ? Param(*maybe) : Param(std::nullopt)) {}

    static Param bytes(std::string content); // bytea
    // Ids where 0 means none.
    static Param id_or_null(std::int64_t id) { return id == 0 ? Param(std::nullopt) : Param(id); }
    static Param array(std::span<const std::int64_t> values);                // bigint[]
    static Param array(std::span<const int> values);                         // int[]
    static Param array(std::span<const double> values);                      // double precision[]
    static Param array(std::span<const std::optional<double>> values);       // double precision[]
    static Param array(std::span<const std::optional<std::int64_t>> values); // bigint[]
    static Param array(std::span<const std::string> values);                 // text[]; cast elements to jsonb as needed
    static Param array(std::span<const std::optional<std::string>> values);  // text[]
    static Param byte_arrays(std::span<const std::string> values);           // bytea[]
};

using Params = std::vector<Param>;

} // namespace perfrig::db
