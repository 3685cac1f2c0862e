// PostgreSQL's binary format for scalars: big endian, as the server's send and recv functions read and write it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace perfrig::db::wire {

// Type ids of the server (pg_type.dat), fixed since long.
enum Type : unsigned {
    bool_id = 16,
    bytea_id = 17,
    int8_id = 20,
    int2_id = 21,
    int4_id = 23,
    text_id = 25,
    json_id = 114,
    float4_id = 700,
    float8_id = 701,
    bytea_array_id = 1001,
    int4_array_id = 1007,
    text_array_id = 1009,
    int8_array_id = 1016,
    float8_array_id = 1022,
    jsonb_id = 3802,
};

inline void put_u32(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}
inline void put_u64(std::string& out, std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}
inline std::uint64_t get_unsigned(std::string_view bytes) { // 1 to 8 bytes
    std::uint64_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
    return value;
}
inline double get_double(std::string_view bytes) { return std::bit_cast<double>(get_unsigned(bytes)); }

} // namespace perfrig::db::wire
