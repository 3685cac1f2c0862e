#include "common/net/http_client.hpp"

#include "common/net/timeout.hpp"
#include "common/net/websocket_state.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace perfrig {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_header_bytes = 64 << 10;

struct Connection {
    explicit Connection(beast::tcp_stream s) : stream(std::move(s)) {}
    beast::tcp_stream stream;
    beast::flat_buffer buffer{most_header_bytes + (128 << 10)};
};

struct Exchange {
    HttpResponse response;
    bool keep = false; // the connection may be used again
};

Result<void> check_call(const Url& url, const HttpCall& call) {
    if (url.secure())
        return fail(ErrorKind::bad_input, "call", url.text(), "TLS is not there yet", "use http:// or ws://");
    const auto bad = [](std::string_view text) { return text.find_first_of("\r\n\0"sv) != text.npos; };
    if (call.method.empty() || bad(call.method) || bad(call.content_type))
        return fail(ErrorKind::bad_input, "call", url.text(), "the method or content type is malformed");
    for (const auto& [name, value] : call.headers.fields())
        if (name.empty() || bad(name) || bad(value))
            return fail(ErrorKind::bad_input, "call", url.text(), "the header '" + name + "' holds a line break");
    return {};
}

http::request<http::string_body> to_beast(const Url& url, HttpCall call) {
    http::request<http::string_body> out;
    out.version(11);
    out.method_string(call.method);
    out.target(url.target);
    out.set(http::field::host, url.host_header());
    out.set(http::field::user_agent, "perfrig");
    for (const auto& [name, value] : call.headers.fields()) out.insert(name, value);
    if (!call.content_type.empty()) out.set(http::field::content_type, call.content_type);
    out.body() = std::move(call.body);
    out.prepare_payload();
    return out;
}

HttpResponse from_beast(http::response<http::string_body> in) {
    HttpResponse out;
    out.status = static_cast<int>(in.result_int());
    for (const auto& field : in) out.headers.add(std::string(field.name_string()), std::string(field.value()));
    out.content_type = out.headers.value_or("Content-Type", "");
    out.body = std::move(in.body());
    return out;
}

// Sends one request and reads its answer. `*sent_stale` becomes true where the connection broke before any byte of an
// answer: on a kept connection that means the server had closed it meanwhile.
asio::awaitable<Result<Exchange>> exchange(std::shared_ptr<Connection> connection, Url url, HttpCall call,
                                           Deadline deadline, bool* sent_stale) {
    const std::size_t most_body = call.most_response_bytes;
    const bool head = call.method == "HEAD";
    const std::string tried = call.method;
    auto request = to_beast(url, std::move(call));
    auto& stream = connection->stream;
    stream.expires_at(deadline.when());
    boost::system::error_code write_error;
    co_await http::async_write(stream, request, into(write_error));
    if (write_error == beast::error::timeout) co_return net_error(write_error, tried, url.text());
    // A server that refuses a big body answers before it has read it all: the answer says why writing failed.
    for (;;) {
        http::response_parser<http::string_body> parser;
        parser.header_limit(most_header_bytes);
        parser.body_limit(most_body);
        parser.skip(head);
        boost::system::error_code error;
        co_await http::async_read(stream, connection->buffer, parser, into(error));
        if (error) {
            *sent_stale = !parser.got_some() && connection->buffer.size() == 0 && error != beast::error::timeout;
            if (error == http::error::end_of_stream)
                co_return fail(ErrorKind::unavailable, tried, url.text(), "the server closed without an answer");
            if (error == http::error::body_limit)
                co_return fail(ErrorKind::unavailable, tried, url.text(),
                               "the answer is longer than " + std::to_string(most_body) + " bytes");
            co_return net_error(write_error ? write_error : error, tried, url.text());
        }
        const int status = static_cast<int>(parser.get().result_int());
        if (status >= 100 && status < 200 && status != 101) continue; // interim; the answer is still to come
        Exchange out;
        out.keep = parser.get().keep_alive() && !write_error;
        out.response = from_beast(parser.release());
        co_return std::move(out);
    }
}

// A peer that has closed shows as readable (end of file) while nothing is expected from it.
bool still_quiet(beast::tcp_stream& stream) {
    char byte = 0;
    return ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

} // namespace

struct HttpClient::State {
    explicit State(Url url) : server(std::move(url)) {}
    Url server;
    std::shared_ptr<Connection> kept;
};

HttpClient::HttpClient(Url server) : state_(std::make_shared<State>(std::move(server))) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
const Url& HttpClient::server() const { return state_->server; }

asio::awaitable<Result<HttpResponse>> HttpClient::request(std::string target, HttpCall call, Deadline deadline) {
    const auto state = state_;
    const Url url = state->server.with_target(std::move(target));
    PERFRIG_CO_CHECK(check_call(url, call));
    const bool repeatable =
        call.method == "GET" || call.method == "HEAD" || call.method == "PUT" || call.method == "DELETE";
    auto connection = std::exchange(state->kept, nullptr);
    if (connection && !still_quiet(connection->stream)) connection = nullptr;
    for (bool reused = connection != nullptr;; reused = false) {
        if (!connection) {
            PERFRIG_CO_TRY(auto socket, co_await connect_tcp(url.host, url.port, deadline));
            connection = std::make_shared<Connection>(beast::tcp_stream(std::move(socket)));
        }
        bool stale = false;
        HttpCall copy = call;
        auto answer = co_await exchange(connection, url, std::move(copy), deadline, &stale);
        if (answer) {
            if (answer->keep && !state->kept) state->kept = std::move(connection);
            co_return std::move(answer->response);
        }
        if (!(reused && stale && repeatable)) co_return std::move(answer).error();
        connection = nullptr;
    }
}

asio::awaitable<Result<HttpResponse>> http_request(Url url, HttpCall call, Deadline deadline) {
    call.headers.set("Connection", "close");
    HttpClient client(url);
    co_return co_await client.request(url.target, std::move(call), deadline);
}

Result<HttpResponse> http_request_blocking(Url url, HttpCall call, Deadline deadline) {
    asio::io_context io(1);
    std::optional<Result<HttpResponse>> out;
    std::exception_ptr thrown;
    auto work = [](Url u, HttpCall c, Deadline d, auto* into_out) -> asio::awaitable<void> {
        into_out->emplace(co_await http_request(std::move(u), std::move(c), d));
    };
    asio::co_spawn(io, work(std::move(url), std::move(call), deadline, &out),
                   [&](std::exception_ptr e) { thrown = std::move(e); });
    io.run();
    if (thrown) std::rethrow_exception(thrown);
    return std::move(*out);
}

asio::awaitable<Result<WebSocket>> connect_websocket(Url url, HttpHeaders headers, Deadline deadline,
                                                     WebSocketOptions options, int* refused_status) {
    if (refused_status) *refused_status = 0;
    HttpCall checked;
    checked.headers = headers;
    PERFRIG_CO_CHECK(check_call(url, checked));
    PERFRIG_CO_TRY(auto socket, co_await connect_tcp(url.host, url.port, deadline));
    beast::tcp_stream stream(std::move(socket));
    PERFRIG_CO_TRY(auto state, co_await upgrade_websocket(std::move(stream), url, std::move(headers), options, deadline,
                                                          refused_status));
    co_return WebSocket(std::move(state));
}

} // namespace perfrig
