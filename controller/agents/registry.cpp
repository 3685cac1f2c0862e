#include "controller/agents/registry.hpp"

#include "common/base/log.hpp"

namespace perfrig::agents {

void Registry::add(const std::shared_ptr<AgentHandle>& agent) {
    auto& place = agents_[agent->machine];
    const auto older = std::exchange(place, agent);
    if (!older) return;
    log::warning("a second hello of " + agent->name + ": its older link is cut");
    older->cut("another session took over");
}

void Registry::remove(const std::shared_ptr<AgentHandle>& agent) {
    const auto at = agents_.find(agent->machine);
    if (at != agents_.end() && at->second == agent) agents_.erase(at);
}

template <class Chosen> void Registry::cut_where(Chosen chosen, const std::string& why) {
    const auto all = agents_; // cutting may take one off
    for (const auto& [machine, agent] : all)
        if (chosen(*agent)) agent->cut(why);
}

void Registry::cut_machine(std::string_view name, const std::string& why) {
    cut_where([&](const AgentHandle& agent) { return agent.name == name; }, why);
}

void Registry::cut_token(std::string_view hash, const std::string& why) {
    cut_where([&](const AgentHandle& agent) { return agent.token_hash == hash; }, why);
}

std::shared_ptr<AgentHandle> Registry::find(model::Id machine) const {
    const auto at = agents_.find(machine);
    return at == agents_.end() ? nullptr : at->second;
}

std::map<model::Id, std::string> Registry::doings() const {
    std::map<model::Id, std::string> doings;
    for (const auto& [machine, agent] : agents_) doings[machine] = agent->doing;
    return doings;
}

std::vector<queue::ConnectedAgent> Registry::connected() const {
    std::vector<queue::ConnectedAgent> all;
    for (const auto& [machine, agent] : agents_) all.push_back({machine, agent->session, agent->worked_token});
    return all;
}

void Registry::send(queue::Outgoing outgoing) {
    const auto agent = find(outgoing.machine);
    if (!agent || agent->session != outgoing.session) return;
    if (agent->outbox.size() >= most_outgoing) {
        log::warning("the agent of " + agent->name + " takes nothing in: its link is cut");
        agent->cut("it takes in too little of what it is sent");
        return;
    }
    // What it said before does not cover what it gets now.
    if (std::holds_alternative<protocol::AssignRun>(outgoing.message) ||
        std::holds_alternative<protocol::PrepareBlock>(outgoing.message))
        agent->worked_token = 0;
    agent->outbox.push_back(std::move(outgoing.message));
    agent->more.notify_all();
}

} // namespace perfrig::agents
