#include "agent/run/work_status.hpp"

namespace perfrig {

std::string WorkStatus::doing() const {
    const View now = view();
    if (now.run == 0) return "idle";
    std::string text = now.state + " run " + std::to_string(now.run);
    if (now.until) text += ", " + std::to_string((now.until->left().count() + 999) / 1000) + " s left";
    return text;
}

} // namespace perfrig
