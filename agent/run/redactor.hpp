// Replaces secrets in a stream of bytes, wherever the chunks are cut: holds back as many bytes as the longest secret
// could still complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

class StreamRedactor {
  public:
    explicit StreamRedactor(std::vector<std::string> secrets);
    std::string add(std::string_view chunk); // what can be let through now
    std::string flush();                     // the rest, at the end

  private:
    std::vector<std::string> secrets_; // longest first: one may contain another
    std::size_t hold_ = 0;
    std::string kept_;
};

} // namespace perfrig
