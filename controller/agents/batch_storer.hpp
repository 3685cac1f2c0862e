// Brings what one agent measured into the database, one batch after the other. While the database is gone, batches wait
// here in a queue of bounded size, then whoever adds to it waits: the agent's spool holds everything. Nothing is
// acknowledged that is not committed.
#pragma once

#include "controller/agents/session.hpp"

#include <deque>
#include <random>
#include <set>

namespace perfrig::ingest {
struct Stored;
}

namespace perfrig::agents {

class BatchStorer {
  public:
    struct Answers {
        std::function<void(protocol::Ack)> stored;
        std::function<void(const std::string& why)> failed; // the link can't go on: it must begin anew, by a hello
    };
    BatchStorer(SessionServices& services, model::Id machine, std::string name, Answers answers);

    void expect(const protocol::Hello& hello); // records of the epochs that it names, and of no other
    boost::asio::awaitable<void> add(std::string frame);
    boost::asio::awaitable<void> run(); // until stop()
    void stop();

  private:
    boost::asio::awaitable<void> store(std::string frame);
    void fail_with(const std::string& why);
    void count(const ingest::Stored& stored, std::size_t bytes, double seconds);

    SessionServices& services_;
    model::Id machine_;
    std::string name_;
    Answers answers_;
    std::set<std::int64_t> epochs_;
    std::deque<std::string> batches_;
    AsyncEvent came_, left_;
    std::mt19937_64 random_{std::random_device{}()};
    bool stopped_ = false;
};

} // namespace perfrig::agents
