#include "agent/run/redactor.hpp"

#include "common/experiment/resolved.hpp"

#include <algorithm>

namespace perfrig {

StreamRedactor::StreamRedactor(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {
    std::erase(secrets_, std::string());
    std::sort(secrets_.begin(), secrets_.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    if (!secrets_.empty()) hold_ = secrets_.front().size() - 1;
}

std::string StreamRedactor::add(std::string_view chunk) {
    if (secrets_.empty()) return std::string(chunk);
    kept_ = redact(kept_ + std::string(chunk), secrets_);
    if (kept_.size() <= hold_) return {};
    std::string out = kept_.substr(0, kept_.size() - hold_);
    kept_.erase(0, out.size());
    return out;
}

std::string StreamRedactor::flush() { return std::move(kept_); }

} // namespace perfrig
