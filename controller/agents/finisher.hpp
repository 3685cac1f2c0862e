// Ended runs are sealed and evaluated here, one at a time, away from the agents' links: it takes seconds for a large
// run. What a controller that died left undone is found by looking for unsealed runs now and then.
#pragma once

#include "common/net/blocking_pool.hpp"
#include "common/net/task_group.hpp"
#include "controller/db/pool.hpp"
#include "controller/model/run.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <set>

namespace perfrig::agents {

class Finisher {
  public:
    // `finished` is called after each run.
    Finisher(boost::asio::any_io_executor executor, db::Pool& pool, BlockingPool& blocking,
             std::function<void()> finished);

    boost::asio::awaitable<void> run(); // until stop()
    void add(model::Id run);
    void stop();

    std::size_t waiting() const { return waiting_.size(); }
    std::int64_t finished() const { return finished_count_; }
    std::int64_t failed() const { return failed_count_; }

  private:
    boost::asio::awaitable<bool> look_for_unsealed();
    boost::asio::awaitable<bool> finish(model::Id run);

    db::Pool& pool_;
    BlockingPool& blocking_;
    std::function<void()> finished_;
    AsyncEvent woken_;
    std::set<model::Id> waiting_;
    std::map<model::Id, int> tries_;
    std::int64_t finished_count_ = 0, failed_count_ = 0;
    bool stopping_ = false;
};

} // namespace perfrig::agents
