// An HTTP/1.1 server for small requests (bodies up to some MiB, read whole before the handler sees them) and
// WebSocket upgrades. One coroutine a connection; no exception of a handler ends more than its own request.
//
// A newcomer is always let in while strangers hold places: where all are taken, the stranger that has been waited for
// longest (for a request, or for the rest of one) is closed. No stranger any more is who was accepted as a WebSocket,
// or got an answer of a handler that knew him (HttpResponse::known_peer); a request that is being worked is never
// closed.
//
// Everything runs on the executor given, which only one thread may run at a time.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "common/net/http_types.hpp"
#include "common/net/websocket.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

namespace perfrig {

struct HttpServerOptions {
    // Where to listen. An address, not a name. Whether anything but loopback is allowed is the caller's decision:
    // ask is_loopback() of url.hpp.
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;                   // 0: a free one; HttpServer::port() tells which
    std::size_t most_connections = 512;       // one more closes a stranger; where there is none it gets 503
    std::size_t most_header_bytes = 16 << 10; // more gets 431
    // The body limit in bytes for a method ("PUT") and path; more gets 413 without being read whole. Empty: 1 MiB.
    std::function<std::size_t(const std::string& method, const std::string& path)> most_body_bytes;
    Milliseconds idle{60'000};      // between requests on a kept connection
    Milliseconds header{10'000};    // from a request's first byte to the end of its header
    Milliseconds body{30'000};      // for the whole body, which must also come at a least rate: see there
    Milliseconds body_grace{5'000}; // before the rate counts
    std::size_t least_body_bytes_per_second = 16 << 10; // on average, at least 1; from the grace on
    Milliseconds handler{60'000}; // for the handler, which is then cancelled (see timeout.hpp) and 503 sent
    Milliseconds write{30'000};   // for the whole response
    WebSocketOptions websocket;
};

using HttpHandler = std::function<boost::asio::awaitable<HttpResponse>(HttpRequest)>;
// What runs on an accepted WebSocket; when it returns, the connection is closed.
using WebSocketSession = std::function<boost::asio::awaitable<void>(WebSocket)>;
// Decides before the upgrade: a response refuses (401, 403, 404 ...), a session accepts.
using UpgradeAnswer = std::variant<HttpResponse, WebSocketSession>;
using UpgradeHandler = std::function<boost::asio::awaitable<UpgradeAnswer>(HttpRequest)>;

class HttpServer {
  public:
    // Binds and begins to accept. Without an upgrade handler a request to upgrade is handled as a plain one.
    static Result<std::unique_ptr<HttpServer>> listen(boost::asio::any_io_executor executor, HttpServerOptions options,
                                                      HttpHandler handler, UpgradeHandler upgrade = {});
    ~HttpServer(); // without stop(): cuts every connection
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    std::uint16_t port() const;
    std::string address() const;     // "127.0.0.1"
    std::string url() const;         // "http://127.0.0.1:8080"
    std::size_t connections() const; // open now
    // Stops accepting, closes idle connections and WebSockets (code 1001), lets running requests finish by the
    // deadline, then cancels them. An error says how many handlers would not end; nothing they refer to may go away.
    boost::asio::awaitable<Result<void>> stop(Deadline deadline);

  private:
    struct State;
    explicit HttpServer(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

} // namespace perfrig
