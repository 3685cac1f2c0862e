#include "common/net/task_group.hpp"

#include "common/base/log.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <vector>

namespace perfrig {

namespace asio = boost::asio;

struct AsyncEvent::State {
    struct Waiter {
        asio::steady_timer timer;
        bool woken = false;
    };
    explicit State(asio::any_io_executor e) : executor(std::move(e)) {}
    asio::any_io_executor executor;
    std::vector<Waiter*> waiters;

    void notify_all() {
        for (Waiter* waiter : waiters) {
            waiter->woken = true;
            waiter->timer.cancel();
        }
    }
};

AsyncEvent::AsyncEvent(asio::any_io_executor executor) : state_(std::make_shared<State>(std::move(executor))) {}
AsyncEvent::~AsyncEvent() { state_->notify_all(); }
void AsyncEvent::notify_all() { state_->notify_all(); }

asio::awaitable<bool> AsyncEvent::wait(Deadline deadline) {
    const auto state = state_; // the event may go away while we wait
    State::Waiter waiter{asio::steady_timer(state->executor, deadline.when())};
    struct Listed { // leaves the list however the coroutine ends, destruction of its frame included
        State& state;
        State::Waiter* waiter;
        Listed(State& s, State::Waiter* w) : state(s), waiter(w) { state.waiters.push_back(waiter); }
        Listed(const Listed&) = delete;
        ~Listed() { std::erase(state.waiters, waiter); }
    };
    const Listed listed(*state, &waiter);
    boost::system::error_code error;
    co_await waiter.timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error && !waiter.woken) throw boost::system::system_error(error); // the waiting coroutine was cancelled
    co_return waiter.woken;
}

struct TaskGroup::State {
    struct Task {
        std::string name;
        asio::cancellation_signal signal;
    };
    explicit State(asio::any_io_executor e) : executor(e), ended(std::move(e)) {}
    asio::any_io_executor executor;
    std::vector<std::shared_ptr<Task>> tasks;
    AsyncEvent ended;

    void cancel() {
        const auto all = tasks; // a task may end, or start another, while signals go out
        for (const auto& task : all) task->signal.emit(asio::cancellation_type::terminal);
    }
};

namespace {

void log_bug(const std::string& name, const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const boost::system::system_error& e) {
        // A cancelled task ends this way; that is how it is meant to end.
        if (e.code() != asio::error::operation_aborted) log::error(name + " ended by an exception: " + e.what());
    } catch (const std::exception& e) {
        log::error(name + " ended by an exception: " + e.what());
    } catch (...) {
        log::error(name + " ended by an exception of unknown type");
    }
}

} // namespace

TaskGroup::TaskGroup(asio::any_io_executor executor) : state_(std::make_shared<State>(std::move(executor))) {}
TaskGroup::~TaskGroup() { state_->cancel(); }
void TaskGroup::cancel() { state_->cancel(); }
std::size_t TaskGroup::size() const { return state_->tasks.size(); }

void TaskGroup::spawn(std::string name, asio::awaitable<void> task) {
    auto entry = std::make_shared<State::Task>();
    entry->name = std::move(name);
    state_->tasks.push_back(entry);
    auto when_ended = [state = state_, entry](std::exception_ptr thrown) {
        if (thrown) log_bug(entry->name, thrown);
        std::erase(state->tasks, entry);
        state->ended.notify_all();
    };
    asio::co_spawn(state_->executor, std::move(task),
                   asio::bind_cancellation_slot(entry->signal.slot(), std::move(when_ended)));
}

asio::awaitable<bool> TaskGroup::wait(Deadline deadline) {
    const auto state = state_;
    while (!state->tasks.empty()) {
        if (!co_await state->ended.wait(deadline)) co_return state->tasks.empty();
    }
    co_return true;
}

} // namespace perfrig
