#include "agent/run/work_status.hpp"

namespace perfrig {

std::string WorkStatus::doing() const {
    const std::lock_guard lock(mutex_);
    const View& now = view_;
    if (now.run == 0) return dirty_.empty() ? "idle" : "not clean: " + dirty_;
    std::string text = now.state + " run " + std::to_string(now.run);
    if (now.until) text += ", " + std::to_string((now.until->left().count() + 999) / 1000) + " s left";
    return text;
}

} // namespace perfrig
