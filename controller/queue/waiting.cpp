#include "controller/queue/waiting.hpp"

#include <algorithm>

namespace perfrig::queue {

namespace {

using model::MachineInSight;
using model::MachineState;

constexpr std::size_t most_machines_told = 5;

std::string time_text(std::int64_t utc_ns) { return to_rfc3339(utc_ns).substr(0, 19) + "Z"; } // whole seconds

std::string list_text(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
}

bool is_silent(const MachineInSight& machine, std::int64_t now_ns) {
    if (machine.state == MachineState::enrolling) return false;
    const auto silent_ns = std::chrono::nanoseconds(silent_after).count();
    return machine.state == MachineState::unreachable || now_ns - machine.last_seen_utc_ns.value_or(0) > silent_ns;
}

std::string silent_text(const MachineInSight& machine) {
    if (!machine.last_seen_utc_ns) return "silent: its agent was never seen";
    return "silent since " + time_text(*machine.last_seen_utc_ns) + ": its agent sends nothing";
}

std::string held_text(const MachineInSight& machine) {
    return "held" + (machine.held_by.empty() ? "" : " by " + machine.held_by) +
           (machine.reason.empty() ? "" : ": " + machine.reason);
}

std::string busy_text(const MachineInSight& machine, std::int64_t now_ns) {
    if (machine.busy_with == 0) return "busy";
    std::string out = "busy with submission " + std::to_string(machine.busy_with);
    if (machine.busy_seconds_left)
        out += " until about " + time_text(now_ns + static_cast<std::int64_t>(*machine.busy_seconds_left * 1e9));
    return out;
}

WaitingFor look_at(const MachineInSight& machine, std::int64_t now_ns) {
    const auto because = [&](const char* why, std::string text) {
        return WaitingFor{machine.name, why, std::move(text)};
    };
    if (machine.state == MachineState::enrolling)
        return because("never_joined", "enrolled, but its agent has never connected: start it");
    if (is_silent(machine, now_ns)) {
        std::string text = silent_text(machine);
        if (machine.previous_state == MachineState::held && machine.state == MachineState::unreachable)
            text += "; and it is held";
        return because("silent", text);
    }
    switch (machine.state) {
    case MachineState::held: return because("held", held_text(machine));
    case MachineState::draining: return because("draining", held_text(machine) + "; and " + busy_text(machine, now_ns));
    case MachineState::quarantined:
        return because("quarantined", "quarantined" + (machine.reason.empty() ? "" : ": " + machine.reason));
    case MachineState::restoring: return because("restoring", "being put back as it was");
    case MachineState::leased: return because("busy", busy_text(machine, now_ns));
    default: return because("free", machine.busy_with == 0 ? "free" : busy_text(machine, now_ns));
    }
}

std::string nobody_suits(const model::WaitingView& view) {
    if (view.machine_name)
        return "there is no machine named " + *view.machine_name + ": enrol it with perfrig-agent join";
    if (view.machines.empty()) return "no machine has joined yet: see perfrig-agent join";
    std::vector<std::string> labels;
    for (const auto& [key, value] : view.machine_labels) labels.push_back(key + "=" + value);
    return "no machine has the labels " + list_text(labels);
}

std::string ahead_text(std::int64_t ahead) {
    if (ahead == 0) return "; it is the next in the queue";
    return "; " + std::to_string(ahead) + (ahead == 1 ? " block is" : " blocks are") + " ahead of it in the queue";
}

} // namespace

std::optional<Waiting> why_waiting(const model::WaitingView& view, std::int64_t now_utc_ns) {
    Waiting out;
    bool in_hand = false;
    for (const auto& machine : view.machines) {
        if (machine.busy_with != view.submission) continue;
        if (!is_silent(machine, now_utc_ns)) return std::nullopt; // something of it is under way
        in_hand = true;
        out.machines.push_back({machine.name, "silent", silent_text(machine)});
        out.text += (out.text.empty() ? "" : "; ") + ("its block is on " + machine.name) + ", which is " +
                    out.machines.back().text + " (gone for good? perfrig machines release " + machine.name + ")";
    }
    if (in_hand) return out;
    if (!view.pending) return std::nullopt;

    out.blocks_ahead = view.blocks_ahead;
    std::size_t left_out = 0;
    for (const auto& machine : view.machines) {
        if (!machine.suits) continue;
        out.machines.push_back(look_at(machine, now_utc_ns));
        auto& text = out.machines.back().text;
        if (!machine.lacking_roles.empty())
            text += " (and its profile lacks what the experiment names: " + list_text(machine.lacking_roles) + ")";
        if (out.machines.size() > most_machines_told)
            ++left_out;
        else
            out.text += (out.text.empty() ? "" : "; ") + machine.name + " is " + text;
    }
    if (left_out > 0) out.text += "; and " + std::to_string(left_out) + " more";
    out.text = (out.machines.empty() ? nobody_suits(view) : out.text) + ahead_text(view.blocks_ahead);
    return out;
}

} // namespace perfrig::queue
