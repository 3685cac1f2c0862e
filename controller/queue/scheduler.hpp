// The scheduler's loop: looks at the queue (pass.hpp) once a second and whenever something happened, and passes on what
// is to be said to agents. One for each controller; all calls on one executor.
#pragma once

#include "common/net/blocking_pool.hpp"
#include "common/net/task_group.hpp"
#include "controller/queue/pass.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace perfrig::queue {

// Who is connected, and how to reach them: the registry of controller/agents, which the queue must not know.
class AgentLinks {
  public:
    virtual ~AgentLinks() = default;
    virtual std::vector<ConnectedAgent> connected() const = 0;
    virtual void send(Outgoing outgoing) = 0; // dropped where that session is gone
};

struct SchedulerCounts { // since the start
    std::int64_t passes = 0, failed_passes = 0;
    std::int64_t granted = 0, retried = 0, overdue = 0, silenced = 0, ended = 0, cancelled = 0;
    double last_pass_seconds = 0;
};

class Scheduler {
  public:
    Scheduler(boost::asio::any_io_executor executor, db::Pool& pool, BlockingPool& blocking, AgentLinks& links,
              AsyncEvent& changed, LeaseTimes times);

    boost::asio::awaitable<void> run(); // until stop()
    void nudge();                       // look now
    void stop();
    const SchedulerCounts& counts() const { return counts_; }
    const LeaseTimes& times() const { return times_; }

  private:
    boost::asio::awaitable<void> look();
    void take(PassOutput out);

    db::Pool& pool_;
    BlockingPool& blocking_;
    AgentLinks& links_;
    AsyncEvent& changed_; // notified for followers
    AsyncEvent woken_;
    LeaseTimes times_;
    SchedulerCounts counts_;
    std::map<model::Id, SaidToAgent> said_;
    std::chrono::steady_clock::time_point trusted_from_; // silence counts from here on
    std::chrono::steady_clock::time_point finished_at_{};
    bool nudged_ = false;
    bool stopping_ = false;
    bool complained_ = false;
};

} // namespace perfrig::queue
