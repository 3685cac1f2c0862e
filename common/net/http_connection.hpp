// Inside common/net only: one connection of an HttpServer, and what connections share with the server.
#pragma once

#include "common/net/beast_stream.hpp"
#include "common/net/http_server.hpp"
#include "common/net/task_group.hpp"

#include <chrono>
#include <cstdint>
#include <list>

namespace perfrig {

// A connection as the server sees it, to end it from outside.
struct OpenConnection {
    boost::beast::tcp_stream* stream = nullptr;  // nullptr once it is a WebSocket
    std::shared_ptr<WebSocket::State> websocket; // set then
    // nothing: between requests; waiting: for the peer, in the middle of one; working: on one, or answering it.
    enum class Doing { nothing, waiting, working } doing = Doing::nothing;
    bool stranger = true; // see http_server.hpp
    std::chrono::steady_clock::time_point waited_since;

    void wait_for(Doing what) {
        doing = what;
        waited_since = std::chrono::steady_clock::now();
    }
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
    std::uint64_t closed_strangers = 0;
    Deadline say_so_again = Deadline::in(Milliseconds(0)); // in the log, that strangers are closed

    // Closes the stranger that has been waited for longest, if there is one, and takes it off the list.
    bool make_room();
    void ask_all_to_end(Deadline deadline); // idle ones now, WebSockets by a closing handshake
    void cut_all();
};

boost::asio::awaitable<void> serve_connection(std::shared_ptr<ConnectionHost> host, boost::beast::tcp_stream stream);
// Answers 503 whatever is asked.
boost::asio::awaitable<void> refuse_connection(boost::beast::tcp_stream stream);

} // namespace perfrig
