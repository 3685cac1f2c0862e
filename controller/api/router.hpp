// From a request to its answer: finds the route, looks the token up, decides who is let in, runs the handler, and sees
// to what all answers share (problem+json, ETag, counting). No exception of a handler ends more than its request.
#pragma once

#include "common/net/http_server.hpp"
#include "controller/api/services.hpp"

namespace perfrig::api {

class Router {
  public:
    explicit Router(Services& services) : services_(services) {}

    boost::asio::awaitable<HttpResponse> handle(HttpRequest http);
    boost::asio::awaitable<UpgradeAnswer> upgrade(HttpRequest http);

    // The limit that HttpServerOptions asks for.
    static std::size_t most_body_bytes(const std::string& method, const std::string& path);

  private:
    // The request once it is let in, or the answer that refuses it.
    boost::asio::awaitable<std::variant<std::shared_ptr<const Request>, HttpResponse>> admit(HttpRequest http);
    boost::asio::awaitable<HttpResponse> run(std::shared_ptr<const Request> request);

    Services& services_;
};

// 304 where If-None-Match names the answer's ETag, which is made from the body where the handler gave none. Pure.
HttpResponse with_etag(HttpResponse response, const HttpHeaders& asked);

} // namespace perfrig::api
