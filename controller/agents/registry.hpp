// Which agents are connected to this controller. A machine has one session at a time: a new hello replaces the older
// one, whose link is cut. All calls on one executor; nothing here blocks.
#pragma once

#include "common/net/task_group.hpp"
#include "controller/queue/scheduler.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace perfrig::agents {

// The controller's end of one agent's link, as everybody but the session itself sees it.
struct AgentHandle {
    explicit AgentHandle(boost::asio::any_io_executor executor) : more(executor) {}

    model::Id machine = 0;
    std::string name;       // of the machine
    std::string token_hash; // of the token that opened the link
    std::string session;    // unique
    std::function<void(const std::string& why)> cut;
    std::int64_t worked_token = 0; // see queue::ConnectedAgent
    std::string doing;             // the agent's own words, from its last heartbeat
    std::string metrics_url;

    std::deque<protocol::FromController> outbox; // the session writes them in order
    AsyncEvent more;                             // something is in the outbox
};

constexpr std::size_t most_outgoing = 10'000; // messages; an agent that takes so few in is cut off

class Registry final : public queue::AgentLinks {
  public:
    void add(const std::shared_ptr<AgentHandle>& agent); // cuts an older session of the machine
    void remove(const std::shared_ptr<AgentHandle>& agent);
    // Cut at once, and told why: the link of a machine, or of whoever came with a token.
    void cut_machine(std::string_view name, const std::string& why);
    void cut_token(std::string_view hash, const std::string& why);

    std::shared_ptr<AgentHandle> find(model::Id machine) const;
    std::size_t size() const { return agents_.size(); }
    std::map<model::Id, std::string> doings() const; // of each connected machine

    std::vector<queue::ConnectedAgent> connected() const override;
    void send(queue::Outgoing outgoing) override;

  private:
    template <class Chosen> void cut_where(Chosen chosen, const std::string& why);
    std::map<model::Id, std::shared_ptr<AgentHandle>> agents_;
};

} // namespace perfrig::agents
