// Inside common/net only: one connection of an HttpServer, and what connections share with the server.
#pragma once

#include "common/net/beast_stream.hpp"
#include "common/net/http_server.hpp"
#include "common/net/task_group.hpp"

#include <list>

namespace perfrig {

// A connection as the server sees it, to end it from outside.
struct OpenConnection {
    boost::beast::tcp_stream* stream = nullptr;  // nullptr once it is a WebSocket
    std::shared_ptr<WebSocket::State> websocket; // set then
    bool busy = false;                           // a request is being read, handled or answered
};

struct ConnectionHost {
    ConnectionHost(boost::asio::any_io_executor e, HttpServerOptions o, HttpHandler h, UpgradeHandler u);
    boost::asio::any_io_executor executor;
    HttpServerOptions options;
    HttpHandler handler;
    UpgradeHandler upgrade;
    bool stopping = false;
    std::list<OpenConnection*> open; // each listed by its own coroutine
    TaskGroup tasks;                 // the connections, those being refused too

    void ask_all_to_end(Deadline deadline); // idle ones now, WebSockets by a closing handshake
    void cut_all();
};

boost::asio::awaitable<void> serve_connection(std::shared_ptr<ConnectionHost> host, boost::beast::tcp_stream stream);
// Answers 503 whatever is asked.
boost::asio::awaitable<void> refuse_connection(boost::beast::tcp_stream stream);

} // namespace perfrig
