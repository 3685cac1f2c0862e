#include "controller/db/rows.hpp"

#include "controller/db/wire.hpp"

#include <charconv>
#include <libpq-fe.h>
#include <stdexcept>

namespace perfrig::db {

namespace {

[[noreturn]] void bug(const char* what, int column) {
    throw std::logic_error("column " + std::to_string(column) + " of a result: " + what);
}

template <class Number> Number number_from(std::string_view text, int column) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) bug("is no number of this kind", column);
    return value;
}

// Calls use(element bytes) for each element of a one-dimensional array without nulls, in binary format.
template <class Use>
void for_each_element(std::string_view bytes, unsigned element_type, int column, std::size_t& size_hint, Use use) {
    if (bytes.size() < 12) bug("is no array", column);
    const auto u32 = [&](std::size_t at) {
        return static_cast<std::uint32_t>(wire::get_unsigned(bytes.substr(at, 4)));
    };
    if (u32(8) != element_type) bug("is an array of something else", column);
    if (u32(0) == 0) return;
    if (u32(0) != 1 || bytes.size() < 20) bug("is no one-dimensional array", column);
    size_hint = u32(12);
    std::size_t at = 20;
    for (std::uint32_t i = 0, n = u32(12); i < n; ++i) {
        const std::uint32_t length = u32(at);
        if (length != 8) bug("is an array with a null in it", column);
        use(bytes.substr(at + 4, 8));
        at += 12;
    }
}

std::string_view cell(const pg_result* result, int row, int column) {
    if (!result || row < 0 || row >= PQntuples(result) || column < 0 || column >= PQnfields(result))
        bug("does not exist in this row", column);
    return {PQgetvalue(result, row, column), static_cast<std::size_t>(PQgetlength(result, row, column))};
}

std::string_view value_of(const pg_result* result, int row, int column) {
    const std::string_view value = cell(result, row, column);
    if (PQgetisnull(result, row, column)) bug("is null", column);
    return value;
}

bool is_binary(const pg_result* result, int column) { return PQfformat(result, column) == 1; }

} // namespace

Rows::Rows(pg_result* owned) : result_(owned, PQclear) {}

int Rows::size() const { return result_ ? PQntuples(result_.get()) : 0; }

std::int64_t Rows::affected() const {
    const std::string_view count = result_ ? PQcmdTuples(result_.get()) : "";
    return count.empty() ? 0 : number_from<std::int64_t>(count, 0);
}

std::string_view Rows::command() const { return result_ ? PQcmdStatus(result_.get()) : ""; }

bool Rows::is_null(int row, int column) const {
    cell(result_.get(), row, column);
    return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view Rows::text(int row, int column) const {
    std::string_view value = value_of(result_.get(), row, column);
    if (is_binary(result_.get(), column) && PQftype(result_.get(), column) == wire::jsonb_id)
        value.remove_prefix(1); // jsonb's binary form is a version byte and the text
    return value;
}

std::int64_t Rows::integer(int row, int column) const {
    const std::string_view value = value_of(result_.get(), row, column);
    if (!is_binary(result_.get(), column)) return number_from<std::int64_t>(value, column);
    switch (PQftype(result_.get(), column)) {
    case wire::int8_id: return static_cast<std::int64_t>(wire::get_unsigned(value));
    case wire::int4_id: return static_cast<std::int32_t>(wire::get_unsigned(value));
    case wire::int2_id: return static_cast<std::int16_t>(wire::get_unsigned(value));
    default: bug("is no integer", column);
    }
}

double Rows::real(int row, int column) const {
    const std::string_view value = value_of(result_.get(), row, column);
    if (!is_binary(result_.get(), column)) return number_from<double>(value, column);
    if (PQftype(result_.get(), column) != wire::float8_id) bug("is no double precision", column);
    return wire::get_double(value);
}

bool Rows::boolean(int row, int column) const {
    const std::string_view value = value_of(result_.get(), row, column);
    if (PQftype(result_.get(), column) != wire::bool_id) bug("is no boolean", column);
    return is_binary(result_.get(), column) ? value[0] != 0 : value == "t";
}

std::string Rows::bytes(int row, int column) const {
    const std::string_view value = value_of(result_.get(), row, column);
    if (PQftype(result_.get(), column) != wire::bytea_id) bug("is no bytea", column);
    if (is_binary(result_.get(), column)) return std::string(value);
    std::size_t length = 0;
    const std::unique_ptr<unsigned char, void (*)(void*)> raw(
        PQunescapeBytea(reinterpret_cast<const unsigned char*>(value.data()), &length), PQfreemem);
    return {reinterpret_cast<const char*>(raw.get()), length};
}

Json Rows::json(int row, int column) const { return Json::parse(text(row, column)); }

std::vector<std::int64_t> Rows::integers(int row, int column) const {
    const std::string_view value = value_of(result_.get(), row, column);
    if (!is_binary(result_.get(), column)) bug("is not in binary format", column);
    std::vector<std::int64_t> out;
    std::size_t size = 0;
    for_each_element(value, wire::int8_id, column, size, [&](std::string_view element) {
        if (out.capacity() < size) out.reserve(size);
        out.push_back(static_cast<std::int64_t>(wire::get_unsigned(element)));
    });
    return out;
}

std::vector<double> Rows::reals(int row, int column) const {
    const std::string_view value = value_of(result_.get(), row, column);
    if (!is_binary(result_.get(), column)) bug("is not in binary format", column);
    std::vector<double> out;
    std::size_t size = 0;
    for_each_element(value, wire::float8_id, column, size, [&](std::string_view element) {
        if (out.capacity() < size) out.reserve(size);
        out.push_back(wire::get_double(element));
    });
    return out;
}

std::optional<std::int64_t> Rows::maybe_integer(int row, int column) const {
    if (is_null(row, column)) return std::nullopt;
    return integer(row, column);
}

std::optional<double> Rows::maybe_real(int row, int column) const {
    if (is_null(row, column)) return std::nullopt;
    return real(row, column);
}

} // namespace perfrig::db
