// Small helpers for the stores' statements.
#pragma once

#include "common/base/result.hpp"
#include "controller/db/rows.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace perfrig::db {

// A timestamptz as nanoseconds since 1970, exactly (the server keeps microseconds).
inline std::string utc_ns(std::string_view column) {
    return "(extract(epoch from " + std::string(column) + ") * 1000000)::bigint * 1000";
}
// A parameter of milliseconds as an interval.
inline std::string interval_ms(std::string_view parameter) {
    return "(" + std::string(parameter) + "::bigint * interval '1 millisecond')";
}

Json to_json(const std::map<std::string, std::string>& map);
// Members that are not strings are left out.
std::map<std::string, std::string> string_map(const Json& object);
// SHA-256 of the canonical text of the labels: what tells metrics of one name apart.
std::string labels_hash(const std::map<std::string, std::string>& labels);

// A word that the table's check allows but the enum does not know is a bug: throws UnhandledError.
template <class T> T word(Result<T> parsed) { return std::move(parsed).value(); }

} // namespace perfrig::db
