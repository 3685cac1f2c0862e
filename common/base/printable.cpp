#include "common/base/printable.hpp"

#include <cstdint>
#include <cstdio>

namespace perfrig {

namespace {

struct Character {
    std::uint32_t code = 0;
    std::size_t bytes = 0; // 0: not UTF-8
};

Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return {byte(0), 1};
    const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
    if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < bytes) return {};
    std::uint32_t code = byte(0) & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3FU);
    }
    const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    const bool none = code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF);
    return overlong || none ? Character{} : Character{code, bytes};
}

bool turns_direction(std::uint32_t code) {
    return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string as_number(const char* form, unsigned code) {
    char out[16];
    std::snprintf(out, sizeof out, form, code);
    return out;
}

} // namespace

std::string printable(std::string_view text, Lines lines) {
    std::string out;
    while (!text.empty()) {
        const Character one = first_of(text);
        if (one.bytes == 0) {
            out += as_number("\\x%02x", static_cast<unsigned char>(text[0]));
            text.remove_prefix(1);
            continue;
        }
        const bool kept = one.code == '\t' || (one.code == '\n' && lines == Lines::keep);
        if (one.code == '\n' && !kept)
            out += "\\n";
        else if (!kept && (one.code < 0x20 || one.code == 0x7F))
            out += as_number("\\x%02x", one.code);
        else if ((one.code >= 0x80 && one.code < 0xA0) || turns_direction(one.code))
            out += as_number("\\u%04x", one.code);
        else
            out += text.substr(0, one.bytes);
        text.remove_prefix(one.bytes);
    }
    return out;
}

std::string_view beginning_of(std::string_view text, std::size_t most_bytes) {
    if (text.size() <= most_bytes) return text;
    while (most_bytes > 0 && (static_cast<unsigned char>(text[most_bytes]) & 0xC0) == 0x80) --most_bytes;
    return text.substr(0, most_bytes);
}

} // namespace perfrig
