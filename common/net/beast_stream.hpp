// Inside common/net only: the TCP stream that all of it uses, and how its failures become Errors. Includes Beast's
// core, so no public header may include this.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cstdint>
#include <string>

namespace perfrig {

// The completion token everywhere here: errors as values, one error_code a call.
inline auto into(boost::system::error_code& error) {
    return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

// timed_out for Beast's timeout, else unavailable with the system's text.
Error net_error(boost::system::error_code code, std::string tried, std::string on, std::string remedy = {});

// Resolves and connects by the deadline, trying each address; TCP_NODELAY is set.
// (A socket, since GCC takes a tcp_stream to be constructible from an Error, which a Result can't have.)
boost::asio::awaitable<Result<boost::asio::ip::tcp::socket>> connect_tcp(std::string host, std::uint16_t port,
                                                                         Deadline deadline);

std::string address_text(const boost::asio::ip::address& address); // IPv4 in IPv6 clothes comes out as IPv4

} // namespace perfrig
