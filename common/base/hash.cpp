#include "common/base/hash.hpp"

#include <array>
#include <openssl/evp.h>
#include <stdexcept>
#include <sys/random.h>

namespace perfrig {

namespace {
std::string to_hex(const unsigned char* bytes, std::size_t count) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    out.reserve(count * 2);
    for (std::size_t i = 0; i < count; ++i) {
        out += digits[bytes[i] >> 4];
        out += digits[bytes[i] & 15];
    }
    return out;
}

constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82F63B78u ^ (c >> 1) : c >> 1; // Castagnoli, reflected
        table[i] = c;
    }
    return table;
}();
} // namespace

struct Sha256::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1)
        throw std::runtime_error("SHA-256 is not available");
}
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

std::string Sha256::hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(state_->context, digest, &size);
    return to_hex(digest, size);
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.add(bytes);
    return hash.hex();
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
    std::uint32_t c = ~seed;
    for (const char b : bytes) c = crc32c_table[(c ^ static_cast<unsigned char>(b)) & 255] ^ (c >> 8);
    return ~c;
}

std::string random_hex(std::size_t bytes) {
    std::string raw(bytes, '\0');
    for (std::size_t got = 0; got < bytes;) {
        const ssize_t n = ::getrandom(raw.data() + got, bytes - got, 0);
        if (n < 0) throw std::runtime_error("the kernel gave no random bytes");
        got += static_cast<std::size_t>(n);
    }
    return to_hex(reinterpret_cast<const unsigned char*>(raw.data()), bytes);
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
    unsigned char difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
    return difference == 0;
}

} // namespace perfrig
