// Inside common/net only: a WebSocket's state behind websocket.hpp, and the two ways into being. Beast's heavy
// templates are instantiated in websocket_stream.cpp alone.
#pragma once

#include "common/net/beast_stream.hpp"
#include "common/net/http_types.hpp"
#include "common/net/url.hpp"
#include "common/net/websocket.hpp"

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace perfrig {

// The server's end: answers 101 to an upgrade request that was read from `stream`.
boost::asio::awaitable<Result<std::shared_ptr<WebSocket::State>>>
accept_websocket(boost::beast::tcp_stream stream, boost::beast::http::request<boost::beast::http::string_body> request,
                 WebSocketOptions options);

// The client's end, on a connected stream. `refused_status` as for connect_websocket().
boost::asio::awaitable<Result<std::shared_ptr<WebSocket::State>>>
upgrade_websocket(boost::beast::tcp_stream stream, Url url, HttpHeaders headers, WebSocketOptions options,
                  Deadline deadline, int* refused_status);

boost::asio::awaitable<void> close_websocket(std::shared_ptr<WebSocket::State> state, std::string reason,
                                             Deadline deadline, std::uint16_t code);
void drop_websocket(const std::shared_ptr<WebSocket::State>& state, std::string why);

} // namespace perfrig
