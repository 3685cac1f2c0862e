// Deadlines for coroutines. Boost 1.81 has no cancel_after, so this is the one place where an operation races a timer.
//
// Cancellation is cooperative: when the deadline passes the operation is cancelled (asio cancellation of type
// terminal) and with_timeout waits until it has ended, so nothing of it runs on behind the caller's back and references
// it holds stay valid. An operation that can't be cancelled (a job in the BlockingPool) therefore delays the answer.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

namespace perfrig {

// Runs `operation` until it ends or the deadline passes; true: it ended by itself. Exceptions of it come through,
// except the "operation aborted" that our own cancellation caused.
boost::asio::awaitable<bool> finish_by(boost::asio::awaitable<void> operation, Deadline deadline);

boost::asio::awaitable<void> sleep_until(Deadline deadline);

namespace detail {
template <class T>
boost::asio::awaitable<void> store_result(boost::asio::awaitable<Result<T>> operation, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(operation));
}
} // namespace detail

// The operation's own result if it had one in time (a value that came at the last moment counts), else
// ErrorKind::timed_out saying what was tried on what.
template <class T>
boost::asio::awaitable<Result<T>> with_timeout(boost::asio::awaitable<Result<T>> operation, Deadline deadline,
                                               std::string tried, std::string on = {}) {
    std::optional<Result<T>> result;
    const bool in_time = co_await finish_by(detail::store_result<T>(std::move(operation), &result), deadline);
    if (result && (in_time || *result)) co_return std::move(*result);
    co_return fail(ErrorKind::timed_out, std::move(tried), std::move(on), "the deadline passed");
}

} // namespace perfrig
