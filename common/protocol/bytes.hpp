// Little-endian numbers at the end of a string and at the front of a view: what the binary formats are made of.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace perfrig::protocol {

template <class T> void put(std::string& out, T value) {
    static_assert(std::is_unsigned_v<T>);
    for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

// The caller has checked that there are enough bytes.
template <class T> T take(std::string_view& bytes) {
    static_assert(std::is_unsigned_v<T>);
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        value = static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i)));
    bytes.remove_prefix(sizeof(T));
    return value;
}

} // namespace perfrig::protocol
