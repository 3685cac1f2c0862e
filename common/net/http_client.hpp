// HTTP/1.1 and WebSocket clients. A response with any status is a value; an Error means that there was no answer:
// unavailable (no such host, refused, cut off), timed_out, bad_input (a URL we can't serve, such as https before TLS).
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "common/net/http_types.hpp"
#include "common/net/url.hpp"
#include "common/net/websocket.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace perfrig {

// What to ask. Host, Content-Length, Connection and User-Agent are filled in.
struct HttpCall {
    std::string method = "GET";
    HttpHeaders headers;
    std::string content_type; // sent where not empty
    std::string body;
    std::size_t most_response_bytes = 64 << 20;
};

// One request on a connection of its own; the URL's target says what is asked for.
boost::asio::awaitable<Result<HttpResponse>> http_request(Url url, HttpCall call, Deadline deadline);

// The same for programs without an event loop (the command line): blocks the calling thread.
Result<HttpResponse> http_request_blocking(Url url, HttpCall call, Deadline deadline);

// Keeps a connection to one server between requests. Calls that overlap get further connections. A kept connection
// that the server has closed meanwhile is replaced; only GET, HEAD, PUT and DELETE are ever sent twice.
class HttpClient {
  public:
    explicit HttpClient(Url server);
    ~HttpClient();
    HttpClient(HttpClient&&) noexcept;
    HttpClient& operator=(HttpClient&&) noexcept;

    // `target` is path and query, starting with '/'.
    boost::asio::awaitable<Result<HttpResponse>> request(std::string target, HttpCall call, Deadline deadline);
    const Url& server() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Dials, and upgrades. `headers` go with the upgrade (Authorization ...). `refused_status`, where given, is set to the
// HTTP status with which the server refused (401, 403 ...; 0: it never answered); it must outlive the call. The Error's
// kind follows kind_of_status(): 401 and 403 are forbidden, 404 not_found, 5xx unavailable or internal.
boost::asio::awaitable<Result<WebSocket>> connect_websocket(Url url, HttpHeaders headers, Deadline deadline,
                                                            WebSocketOptions options = {},
                                                            int* refused_status = nullptr);

} // namespace perfrig
