#include "common/net/timeout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace perfrig {

namespace asio = boost::asio;

namespace {

bool is_abort(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const boost::system::system_error& e) {
        return e.code() == asio::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

} // namespace

asio::awaitable<bool> finish_by(asio::awaitable<void> operation, Deadline deadline) {
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, deadline.when());
    // Whichever ends first cancels the other, and both have ended when this continues. A cancellation of the caller
    // reaches both.
    const auto [order, thrown, timer_error] =
        co_await asio::experimental::make_parallel_group(asio::co_spawn(executor, std::move(operation), asio::deferred),
                                                         timer.async_wait(asio::deferred))
            .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
    const bool deadline_passed = order[0] == 1 && !timer_error;
    if (thrown && !(deadline_passed && is_abort(thrown))) std::rethrow_exception(thrown);
    co_return !deadline_passed;
}

asio::awaitable<void> sleep_until(Deadline deadline) {
    asio::steady_timer timer(co_await asio::this_coro::executor, deadline.when());
    co_await timer.async_wait(asio::use_awaitable);
}

} // namespace perfrig
