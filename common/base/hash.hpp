// Hashes: SHA-256 for identity (definitions, artifacts, tokens, fingerprints), CRC-32C for torn records on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace perfrig {

std::string sha256_hex(std::string_view bytes); // 64 lower-case hex digits

class Sha256 {
  public:
    Sha256();
    ~Sha256();
    void add(std::string_view bytes);
    std::string hex(); // ends it

  private:
    struct State;
    std::unique_ptr<State> state_;
};

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);

// `bytes` random bytes from the kernel as lower-case hex: tokens, boot marks.
std::string random_hex(std::size_t bytes);

// Compares without telling by its time where the first difference lies.
bool equal_in_constant_time(std::string_view a, std::string_view b);

} // namespace perfrig
