#include "controller/queue/hello_decision.hpp"

#include "common/net/url.hpp"
#include "common/placement/profile.hpp"

#include <tuple>

namespace perfrig::queue {

using model::LeaseState;
using model::MachineState;

namespace {

constexpr std::size_t most_profile_bytes = 64 << 10, most_labels_bytes = 16 << 10, most_environment_bytes = 2 << 20;

bool is_start_id(std::string_view text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

LeaseStep decide_lease(const protocol::Hello& hello, const std::optional<model::Lease>& lease) {
    if (!lease) return LeaseStep::none;
    // An agent makes the highest token durable before it answers, so a lower one proves that it never heard of this
    // lease: the block that it names, if it is the same, it has from an earlier one.
    const bool heard_of_it = hello.highest_token >= lease->token;
    const bool has_it = heard_of_it && hello.open_block == lease->block_id;
    if (lease->state == LeaseState::releasing) return has_it ? LeaseStep::end_again : LeaseStep::finish;
    if (has_it) return LeaseStep::keep;
    // Only a lease that was never answered is sure to have no run under way: of any other the agent has lost its
    // memory.
    return heard_of_it || lease->state != LeaseState::granted ? LeaseStep::revoke : LeaseStep::prepare_again;
}

MachineState decide_state(const protocol::Hello& hello, const model::Machine& machine, bool leased) {
    const auto before = machine.state == MachineState::unreachable ? machine.previous_state : machine.state;
    if (before == MachineState::quarantined) return MachineState::quarantined;
    const bool wanted_back = before == MachineState::held || before == MachineState::draining;
    if (leased) return wanted_back ? MachineState::draining : MachineState::leased;
    if (hello.open_changes > 0) return MachineState::restoring;
    return wanted_back ? MachineState::held : MachineState::idle;
}

} // namespace

HelloDecision decide_hello(const protocol::Hello& hello, const model::Machine& machine,
                           const std::optional<model::Lease>& lease) {
    HelloDecision decision;
    decision.lease = decide_lease(hello, lease);
    const bool stays = decision.lease == LeaseStep::keep || decision.lease == LeaseStep::end_again ||
                       decision.lease == LeaseStep::prepare_again;
    if (decision.lease == LeaseStep::keep || decision.lease == LeaseStep::end_again)
        decision.keep_block = lease->block_id;
    decision.state = decide_state(hello, machine, stays);
    return decision;
}

Result<void> check_hello(const protocol::Hello& hello, const model::Machine& machine) {
    const auto refuse = [&](ErrorKind kind, std::string why, std::string remedy = {}) {
        return fail(kind, "take the hello of", machine.name, std::move(why), std::move(remedy));
    };
    if (hello.machine != machine.name)
        return refuse(ErrorKind::forbidden, "its token belongs to this machine, and it calls itself " + hello.machine,
                      "start it with its own token, or join it anew");
    if (!choose_version(hello))
        return refuse(ErrorKind::bad_input,
                      "it speaks versions " + std::to_string(hello.version_min) + " to " +
                          std::to_string(hello.version_max) + " of the link, this controller " +
                          std::to_string(protocol::version),
                      "install an agent and a controller of the same release");
    if (!is_start_id(hello.start_id)) return refuse(ErrorKind::bad_input, "its start_id is not 32 hex digits");
    for (const auto& range : hello.spool)
        if (!range.start_id.empty() && !is_start_id(range.start_id))
            return refuse(ErrorKind::bad_input,
                          "the start_id of its epoch " + std::to_string(range.epoch) + " is not 32 hex digits");
    if (!hello.metrics_url.empty() && !parse_url(hello.metrics_url))
        return refuse(ErrorKind::bad_input, "its metrics_url is no URL");
    for (const auto& [name, part, most] : {std::tuple("profile", &hello.profile, most_profile_bytes),
                                           std::tuple("labels", &hello.labels, most_labels_bytes),
                                           std::tuple("environment", &hello.environment, most_environment_bytes)})
        if (const auto bytes = canonical_json(*part).size(); bytes > most)
            return refuse(ErrorKind::bad_input, "its " + std::string(name) + " has " + std::to_string(bytes) +
                                                    " bytes; at most " + std::to_string(most) + " are taken");
    for (const auto& [label, value] : hello.labels.items())
        if (label.empty() || !value.is_string())
            return refuse(ErrorKind::bad_input, "its label '" + label.substr(0, 64) + "' is no text");
    if (const auto profile = profile_from_json(hello.profile); !profile)
        return refuse(ErrorKind::bad_input, profile.error().on + ": " + profile.error().why,
                      profile.error().remedy.empty() ? "mend the profile in its agent.yaml" : profile.error().remedy);
    return {};
}

std::optional<int> choose_version(const protocol::Hello& hello) {
    if (hello.version_min > protocol::version || hello.version_max < protocol::version) return std::nullopt;
    return protocol::version;
}

} // namespace perfrig::queue
