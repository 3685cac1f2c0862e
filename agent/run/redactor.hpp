// Replaces secrets in a stream of bytes, wherever the chunks are cut: holds back only what may be a secret's beginning.
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
    std::string pass(bool more_may_come);
    std::vector<std::string> secrets_; // longest first: one may contain another
    std::string kept_;
};

} // namespace perfrig
