// The agent's end of the link: dials, says hello, and from then on three coroutines share the connection: one reads,
// one sends what the spool holds, one keeps the heart beating. When any of them ends the connection is given up and
// dialled again after a jittered wait. Nothing is taken off the spool that the controller has not acknowledged.
//
// Runs on one executor; say() may be called from any thread.
#pragma once

#include "agent/run/block_worker.hpp"
#include "agent/session/link_figures.hpp"
#include "agent/session/spool.hpp"
#include "common/net/backoff.hpp"
#include "common/net/http_client.hpp"
#include "common/net/task_group.hpp"

#include <atomic>
#include <deque>
#include <memory>

namespace perfrig {

enum class NetworkPolicy {
    live,          // records go out as they come, during measure too
    after_measure, // during measure only heartbeats and what was spooled before
};

struct LinkOptions {
    Url controller; // its agent endpoint is found below
    std::string token;
    NetworkPolicy during_measure = NetworkPolicy::live;
    std::size_t most_in_flight = 4;                  // batches that are not acknowledged
    Milliseconds least_wait{250}, most_wait{15'000}; // between dials
    Milliseconds refused_wait{60'000};               // after a refusal that lasts until a person acts
    Milliseconds answer{20'000};                     // for the upgrade and for the welcome
};

// What only main knows of a hello: name, versions, profile, environment. Epoch, block and spool are filled in.
using HelloMaker = std::function<protocol::Hello()>;

class Link {
  public:
    // What it refers to must outlive run(). `make_hello` is called at each dial.
    Link(boost::asio::any_io_executor executor, LinkOptions options, Spool& spool, BlockWorker& worker,
         const WorkStatus& status, HelloMaker make_hello);
    ~Link();

    boost::asio::awaitable<void> run();    // until stop(); never throws for what a peer does
    void stop();                           // run() returns soon
    void say(protocol::FromAgent message); // sent if there is a connection; what matters is said again after a hello
    // Waits until everything spooled by now is acknowledged; false: not by the deadline.
    boost::asio::awaitable<bool> drain(Deadline deadline);
    const LinkFigures& figures() const { return figures_; }

  private:
    struct Session;
    boost::asio::awaitable<Result<void>> dial();
    boost::asio::awaitable<void> read_all(std::shared_ptr<Session> session);
    boost::asio::awaitable<void> send_records(std::shared_ptr<Session> session);
    boost::asio::awaitable<void> beat(std::shared_ptr<Session> session);
    void take(Session& session, protocol::FromController message);
    void welcome(Session& session, const protocol::Welcome& message);
    bool may_send(const Session& session) const;
    boost::asio::awaitable<void> write(std::shared_ptr<Session> session, protocol::FromAgent message);

    boost::asio::any_io_executor executor_;
    LinkOptions options_;
    Spool& spool_;
    BlockWorker& worker_;
    const WorkStatus& status_;
    HelloMaker make_hello_;
    TaskGroup tasks_;
    AsyncEvent changed_; // records came, acks came, the end
    std::atomic<bool> woken_ = false;
    std::shared_ptr<Session> session_;     // the connection there is
    std::deque<protocol::FromAgent> held_; // said since the last hello was made: it doesn't know of them yet
    SpoolPosition acknowledged_;           // the last ack
    std::optional<std::int64_t> offset_ns_, offset_error_ns_;
    LinkFigures figures_;
    bool stop_ = false;
};

} // namespace perfrig
