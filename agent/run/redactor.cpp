#include "agent/run/redactor.hpp"

#include <algorithm>

namespace perfrig {

StreamRedactor::StreamRedactor(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {
    std::erase(secrets_, std::string());
    std::sort(secrets_.begin(), secrets_.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

// At each place the longest secret that begins there wins. What could still become a secret, or a longer one, waits for
// more; everything else goes through at once (a line that says "ready" must not wait for the next).
std::string StreamRedactor::pass(bool more_may_come) {
    static constexpr std::string_view mark = "[secret]";
    std::string out;
    std::size_t at = 0;
    while (at < kept_.size()) {
        const std::string_view left = std::string_view(kept_).substr(at);
        const std::string* found = nullptr;
        bool open = false;
        for (const std::string& secret : secrets_) {
            if (left.starts_with(secret)) {
                found = &secret;
                break; // longest first
            }
            open |= more_may_come && std::string_view(secret).starts_with(left);
        }
        if (open) break;
        if (!found)
            out.push_back(kept_[at++]);
        else {
            out += mark;
            at += found->size();
        }
    }
    kept_.erase(0, at);
    return out;
}

std::string StreamRedactor::add(std::string_view chunk) {
    if (secrets_.empty()) return std::string(chunk);
    kept_ += chunk;
    return pass(true);
}

std::string StreamRedactor::flush() { return pass(false); }

} // namespace perfrig
