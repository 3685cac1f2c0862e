// Coroutines with an owner. A group starts them, logs what they throw (by name: a task that ends by an exception is a
// bug), can cancel all of them, and waits for their end. The group must outlive its tasks' use of what they refer to:
// cancel(), then co_await wait(). One executor, one thread at a time.
#pragma once

#include "common/base/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace perfrig {

class TaskGroup {
  public:
    explicit TaskGroup(boost::asio::any_io_executor executor);
    ~TaskGroup(); // cancels; tasks end when the executor next runs
    TaskGroup(const TaskGroup&) = delete;
    TaskGroup& operator=(const TaskGroup&) = delete;

    void spawn(std::string name, boost::asio::awaitable<void> task);
    void cancel();            // every task there is now; its next co_await throws "operation aborted"
    std::size_t size() const; // tasks that have not ended
    boost::asio::awaitable<bool> wait(Deadline deadline); // true: all have ended

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Wakes coroutines that wait for something to change. notify() before wait() is not remembered: test the condition
// first, in a loop. while (!ready && co_await event.wait(deadline)) {}
class AsyncEvent {
  public:
    explicit AsyncEvent(boost::asio::any_io_executor executor);
    ~AsyncEvent();
    AsyncEvent(const AsyncEvent&) = delete;
    AsyncEvent& operator=(const AsyncEvent&) = delete;

    void notify_all();
    boost::asio::awaitable<bool> wait(Deadline deadline); // false: the deadline passed first

  private:
    struct State;
    std::shared_ptr<State> state_;
};

} // namespace perfrig
