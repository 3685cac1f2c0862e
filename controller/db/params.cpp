#include "controller/db/params.hpp"

#include "controller/db/wire.hpp"

#include <charconv>
#include <cmath>

namespace perfrig::db {

namespace {

// dimensions (0 or 1) | has nulls | element type | length | lower bound | elements as (length, bytes); see array_recv.
template <class Range, class Put>
Param array_param(unsigned array_type, unsigned element_type, const Range& values, std::size_t element_bytes, Put put) {
    Param out(std::nullopt);
    out.null = false;
    out.binary = true;
    out.type = array_type;
    out.value.reserve(20 + values.size() * (4 + element_bytes));
    wire::put_u32(out.value, values.empty() ? 0 : 1);
    wire::put_u32(out.value, 0);
    wire::put_u32(out.value, element_type);
    if (values.empty()) return out;
    wire::put_u32(out.value, static_cast<std::uint32_t>(values.size()));
    wire::put_u32(out.value, 1);
    for (const auto& value : values) put(out.value, value);
    return out;
}

void put_null(std::string& out) { wire::put_u32(out, 0xffffffffU); }
void put_int8(std::string& out, std::int64_t value) {
    wire::put_u32(out, 8);
    wire::put_u64(out, static_cast<std::uint64_t>(value));
}
void put_float8(std::string& out, double value) {
    wire::put_u32(out, 8);
    wire::put_u64(out, std::bit_cast<std::uint64_t>(value));
}
void put_text(std::string& out, std::string_view value) {
    wire::put_u32(out, static_cast<std::uint32_t>(value.size()));
    out.append(value);
}
constexpr std::string_view replacement = "\xef\xbf\xbd"; // U+FFFD in UTF-8

std::string without_nul(std::string text) {
    for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at))
        text.replace(at, 1, replacement);
    return text;
}

// The escape \u0000 in printed JSON; a backslash that is itself escaped begins none.
std::string without_nul_escape(std::string json) {
    if (json.find("\\u0000") == std::string::npos) return json;
    for (std::size_t at = 0; at + 1 < json.size(); ++at) {
        if (json[at] != '\\') continue;
        if (json.compare(at, 6, "\\u0000") == 0) json.replace(at, 6, "\\ufffd");
        ++at;
    }
    return json;
}

void put_clean_text(std::string& out, const std::string& value) {
    if (value.find('\0') == std::string::npos && value.find("\\u0000") == std::string::npos)
        put_text(out, value);
    else
        put_text(out, without_nul_escape(without_nul(value)));
}

// A null element where the optional is empty.
template <class Put> auto or_null(Put put) {
    return [put](std::string& out, const auto& value) { value ? put(out, *value) : put_null(out); };
}

} // namespace

Param::Param(std::string text) : value(without_nul(std::move(text))) {}
Param::Param(const Json& json) : value(without_nul_escape(canonical_json(json))) {}

Param::Param(double number) {
    if (std::isnan(number))
        value = "NaN";
    else if (std::isinf(number))
        value = number > 0 ? "Infinity" : "-Infinity";
    else {
        char text[32];
        const auto end = std::to_chars(text, text + sizeof text, number);
        value.assign(text, end.ptr);
    }
}

Param Param::bytes(std::string content) {
    Param out(std::nullopt);
    out.null = false;
    out.binary = true;
    out.type = wire::bytea_id;
    out.value = std::move(content);
    return out;
}

Param Param::array(std::span<const std::int64_t> values) {
    return array_param(wire::int8_array_id, wire::int8_id, values, 8, put_int8);
}
Param Param::array(std::span<const int> values) {
    return array_param(wire::int4_array_id, wire::int4_id, values, 4, [](std::string& out, int value) {
        wire::put_u32(out, 4);
        wire::put_u32(out, static_cast<std::uint32_t>(value));
    });
}
Param Param::array(std::span<const double> values) {
    return array_param(wire::float8_array_id, wire::float8_id, values, 8, put_float8);
}
Param Param::array(std::span<const std::optional<double>> values) {
    return array_param(wire::float8_array_id, wire::float8_id, values, 8, or_null(put_float8));
}
Param Param::array(std::span<const std::optional<std::int64_t>> values) {
    return array_param(wire::int8_array_id, wire::int8_id, values, 8, or_null(put_int8));
}
Param Param::array(std::span<const std::string> values) {
    return array_param(wire::text_array_id, wire::text_id, values, 32, put_clean_text);
}
Param Param::array(std::span<const std::optional<std::string>> values) {
    return array_param(wire::text_array_id, wire::text_id, values, 32, or_null(put_clean_text));
}
Param Param::byte_arrays(std::span<const std::string> values) {
    return array_param(wire::bytea_array_id, wire::bytea_id, values, 256, put_text);
}

} // namespace perfrig::db
