// What the tests of common/net share: an event loop that runs one coroutine to its end within a bound, a server on a
// free loopback port, and a raw TCP peer that can misbehave in ways that our own client would not.
#pragma once

#include "common/net/http_client.hpp"
#include "common/net/http_server.hpp"
#include "common/net/task_group.hpp"
#include "common/net/timeout.hpp"
#include "tests/support/doctest.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

namespace perfrig::net_test {

using boost::asio::awaitable;

inline Deadline soon(int milliseconds = 10'000) { return Deadline::in(Milliseconds(milliseconds)); }

// Runs the coroutine on `io` until it ends; fails the test where that takes longer than 30 s.
void run(boost::asio::io_context& io, std::function<awaitable<void>()> body);

// Answers with what it was asked: method, path, body size; "/boom" throws, "/slow" takes 200 ms, "/never" doesn't end,
// "/echo" returns the body. "/ws" upgrades with the token "good" and echoes. Who has that token is a known peer.
struct EchoServer {
    explicit EchoServer(boost::asio::io_context& io, HttpServerOptions options = {});
    Url url(const std::string& target = "/") const;
    int handled = 0;        // requests that reached the handler
    int sessions_ended = 0; // WebSockets whose session returned
    std::string last_session_error;
    std::unique_ptr<HttpServer> server;
};

// A socket in the hands of the test.
class RawPeer {
  public:
    RawPeer(boost::asio::io_context& io, std::uint16_t port);
    awaitable<void> send(std::string bytes);            // errors are ignored: the server may have cut us off
    awaitable<std::string> read_all(Deadline deadline); // until the end of file; "TIMEOUT" is added where it never came
    awaitable<std::string> read_some(Deadline deadline);
    void close();
    boost::asio::ip::tcp::socket& socket() { return socket_; }

  private:
    boost::asio::ip::tcp::socket socket_;
};

// A listener that accepts into the kernel's queue and never answers.
class SilentServer {
  public:
    explicit SilentServer(boost::asio::io_context& io);
    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  private:
    boost::asio::ip::tcp::acceptor acceptor_;
};

} // namespace perfrig::net_test
