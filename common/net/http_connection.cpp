#include "common/net/http_connection.hpp"

#include "common/base/log.hpp"
#include "common/net/timeout.hpp"
#include "common/net/url.hpp"
#include "common/net/websocket_state.hpp"

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

namespace perfrig {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::string_view_literals;

namespace {

using BeastRequest = http::request<http::string_body>;

constexpr std::size_t default_most_body_bytes = 1 << 20;
constexpr std::size_t read_step_bytes = 64 << 10;
constexpr Milliseconds linger{5'000};
constexpr std::size_t most_linger_bytes = 64 << 20;

// What one connection carries from request to request.
struct Serving {
    Serving(std::shared_ptr<ConnectionHost> h, beast::tcp_stream s)
        : host(std::move(h)), stream(std::move(s)), buffer(host->options.most_header_bytes + 2 * read_step_bytes) {
        boost::system::error_code ignored; // a peer that is gone already shows at the first read
        const auto end = stream.socket().remote_endpoint(ignored);
        peer_address = ignored ? "" : address_text(end.address());
        peer_port = ignored ? 0 : end.port();
        open.stream = &stream;
        open.wait_for(OpenConnection::Doing::nothing);
        host->open.push_back(&open);
    }
    Serving(const Serving&) = delete;
    ~Serving() { host->open.remove(&open); }

    std::shared_ptr<ConnectionHost> host;
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    std::string peer_address;
    std::uint16_t peer_port = 0;
    OpenConnection open;
};

bool has_control_character(std::string_view text) {
    for (const char c : text)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return true;
    return false;
}

// A handler that puts a line break into a header is a bug that an attacker might steer: nothing of it is sent.
bool may_be_sent(const HttpResponse& response) {
    if (response.status < 200 || response.status > 599 || has_control_character(response.content_type)) return false;
    for (const auto& [name, value] : response.headers.fields())
        if (name.empty() || has_control_character(name) || has_control_character(value)) return false;
    return true;
}

// Writes the answer by the write deadline; true: the connection may go on.
asio::awaitable<bool> answer(beast::tcp_stream& stream, HttpResponse response, Deadline deadline, bool head,
                             unsigned version, bool keep_alive) {
    http::response<http::string_body> out;
    out.version(version);
    out.result(static_cast<unsigned>(response.status));
    out.reason(reason_phrase(response.status));
    out.set(http::field::server, "perfrig");
    for (const auto& [name, value] : response.headers.fields()) out.insert(name, value);
    if (!response.content_type.empty()) out.set(http::field::content_type, response.content_type);
    out.keep_alive(keep_alive);
    const bool may_have_body = response.status != 204 && response.status != 304;
    if (may_have_body) out.content_length(response.body.size());
    if (may_have_body && !head) out.body() = std::move(response.body);
    stream.expires_at(deadline.when());
    boost::system::error_code error;
    http::response_serializer<http::string_body> serializer(out);
    if (head || !may_have_body)
        co_await http::async_write_header(stream, serializer, into(error));
    else
        co_await http::async_write(stream, serializer, into(error));
    co_return !error && keep_alive;
}

// Ends a connection on which the client may still be sending: closing at once would make the kernel reset it, and the
// client would lose our answer (RFC 9112, 9.6). So: end of file first, then read and forget, within bounds.
asio::awaitable<void> close_lingering(beast::tcp_stream& stream) {
    boost::system::error_code error;
    stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
    std::string waste(read_step_bytes, '\0');
    stream.expires_after(linger);
    for (std::size_t total = 0; !error && total < most_linger_bytes;)
        total += co_await stream.async_read_some(asio::buffer(waste), into(error));
}

asio::awaitable<void> refuse(beast::tcp_stream& stream, int status, std::string why, Deadline deadline) {
    HttpResponse response = problem_response(status, why);
    co_await answer(stream, std::move(response), deadline, false, 11, false);
    co_await close_lingering(stream);
}

struct Refusal {
    int status = 0; // 0: just close
    std::string why;
};
using Read = boost::system::result<BeastRequest, Refusal>;

Refusal refusal_of(boost::system::error_code error, const HttpServerOptions& options) {
    const bool malformed = error.category() == http::make_error_code(http::error::bad_method).category();
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
        return {431, "the header is longer than " + std::to_string(options.most_header_bytes) + " bytes"};
    if (error == http::error::body_limit) return {413, "the body is longer than this resource takes"};
    if (!malformed || error == http::error::end_of_stream || error == http::error::partial_message) return {};
    return {400, "malformed request: " + error.message()};
}

// One whole request: header by its deadline, the limit for its body looked up, then the body.
asio::awaitable<Read> read_request(Serving& on) {
    const auto& options = on.host->options;
    boost::system::error_code error;
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(options.most_header_bytes));
    parser.body_limit(boost::none); // known only once the header has been read
    on.stream.expires_after(options.header);
    co_await http::async_read_header(on.stream, on.buffer, parser, into(error));
    if (error) co_return refusal_of(error, options);

    const auto& header = parser.get();
    const std::string target(header.target());
    std::size_t most_body = default_most_body_bytes;
    if (options.most_body_bytes)
        most_body = options.most_body_bytes(std::string(header.method_string()), target.substr(0, target.find('?')));
    const auto length = parser.content_length();
    if (length && *length > most_body)
        co_return Refusal{413, "the body has " + std::to_string(*length) + " bytes; this resource takes at most " +
                                   std::to_string(most_body)};
    parser.body_limit(most_body);
    const auto began = std::chrono::steady_clock::now();
    on.stream.expires_at(began + std::min(options.body, options.body_grace));
    if (beast::iequals(header[http::field::expect], "100-continue") && on.buffer.size() == 0) {
        constexpr auto go_on = "HTTP/1.1 100 Continue\r\n\r\n"sv;
        co_await asio::async_write(on.stream, asio::buffer(go_on), into(error));
        if (error) co_return Refusal{};
    }
    parser.eager(true);
    for (std::size_t got = 0; !parser.is_done();) {
        got += co_await http::async_read_some(on.stream, on.buffer, parser, into(error));
        if (error) co_return refusal_of(error, options);
        const Milliseconds earned(static_cast<std::int64_t>(got * 1'000 / options.least_body_bytes_per_second));
        on.stream.expires_at(began + std::min(options.body, options.body_grace + earned));
    }
    co_return parser.release();
}

Result<HttpRequest> to_plain(BeastRequest& in, const Serving& on) {
    HttpRequest out;
    out.method = in.method_string();
    out.target = in.target();
    if (in.version() == 11 && in.find(http::field::host) == in.end())
        return fail(ErrorKind::bad_input, "read the request", out.target, "the Host header is missing");
    PERFRIG_TRY(auto parts, parse_target(out.target));
    out.path = std::move(parts.path);
    out.segments = std::move(parts.segments);
    out.query = std::move(parts.query);
    for (const auto& field : in) out.headers.add(std::string(field.name_string()), std::string(field.value()));
    out.body = std::move(in.body());
    out.peer_address = on.peer_address;
    out.peer_port = on.peer_port;
    return out;
}

template <class T> asio::awaitable<Result<T>> as_result(asio::awaitable<T> handler) {
    co_return co_await std::move(handler);
}

// Runs a handler by its deadline; whatever goes wrong in it becomes an answer and a line in the log.
template <class T>
asio::awaitable<T> handled(std::function<asio::awaitable<T>(HttpRequest)> handler, HttpRequest request,
                           Milliseconds limit) {
    const std::string what = request.method + " " + request.path;
    std::string bug;
    try {
        auto out = co_await with_timeout(as_result(handler(std::move(request))), Deadline::in(limit), "handle", what);
        if (out) co_return std::move(*out);
        log::error(out.error().text());
        co_return problem_response(503, "the request took longer than " + std::to_string(limit.count()) + " ms");
    } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) throw; // the server is being stopped
        bug = e.what();
    } catch (const std::exception& e) {
        bug = e.what();
    } catch (...) {
        bug = "an exception of unknown type";
    }
    log::error("handling " + what + " failed: " + bug);
    co_return problem_response(500, "an error inside the server; its log says more");
}

// From the answer to an upgrade request to the end of the WebSocket.
asio::awaitable<void> run_websocket(Serving& on, BeastRequest request, WebSocketSession session) {
    if (on.buffer.size() > 0) {
        co_await refuse(on.stream, 400, "data was sent before the upgrade was answered",
                        Deadline::in(on.host->options.write));
        co_return;
    }
    on.open.stream = nullptr;
    auto state = co_await accept_websocket(std::move(on.stream), std::move(request), on.host->options.websocket);
    if (!state) {
        log::debug(state.error().text());
        co_return;
    }
    on.open.websocket = *state;
    WebSocket websocket(*state);
    co_await session(std::move(websocket));
}

} // namespace

asio::awaitable<void> refuse_connection(beast::tcp_stream stream) {
    co_await refuse(stream, 503, "too many connections; try again later", Deadline::in(Milliseconds(2'000)));
}

asio::awaitable<void> serve_connection(std::shared_ptr<ConnectionHost> host, beast::tcp_stream stream) {
    Serving on(host, std::move(stream));
    const auto& options = host->options;
    while (!host->stopping) {
        if (on.buffer.size() == 0) { // wait for the next request's first byte
            boost::system::error_code error;
            on.stream.expires_after(options.idle);
            on.buffer.commit(co_await on.stream.async_read_some(on.buffer.prepare(4096), into(error)));
            if (error) co_return;
        }
        on.open.wait_for(OpenConnection::Doing::waiting);
        auto read = co_await read_request(on);
        if (!on.stream.socket().is_open()) co_return; // it had to make room
        if (!read) {
            const auto& refusal = read.error();
            if (refusal.status != 0)
                co_await refuse(on.stream, refusal.status, refusal.why, Deadline::in(options.write));
            co_return;
        }
        on.open.doing = OpenConnection::Doing::working;
        BeastRequest& raw = *read;
        const bool head = raw.method() == http::verb::head;
        bool keep_alive = raw.keep_alive() && !host->stopping;
        HttpResponse response;
        if (auto request = to_plain(raw, on); !request) {
            response = problem_response(request.error());
        } else if (host->upgrade && beast::websocket::is_upgrade(raw)) {
            auto decision = co_await handled<UpgradeAnswer>(host->upgrade, std::move(*request), options.handler);
            if (auto* session = std::get_if<WebSocketSession>(&decision)) {
                co_await run_websocket(on, std::move(raw), std::move(*session));
                co_return;
            }
            response = std::get<HttpResponse>(std::move(decision));
        } else {
            response = co_await handled<HttpResponse>(host->handler, std::move(*request), options.handler);
        }
        if (!may_be_sent(response)) {
            log::error("a handler's response has a status or header that can't be sent: " + std::string(raw.target()));
            response = problem_response(500, "an error inside the server; its log says more");
        }
        if (response.known_peer) on.open.stranger = false;
        if (on.open.stranger) on.open.wait_for(OpenConnection::Doing::waiting); // he may never take the answer
        keep_alive = keep_alive && !host->stopping;
        if (!co_await answer(on.stream, std::move(response), Deadline::in(options.write), head, raw.version(),
                             keep_alive)) {
            on.open.wait_for(OpenConnection::Doing::waiting);
            co_await close_lingering(on.stream);
            co_return;
        }
        on.open.wait_for(OpenConnection::Doing::nothing);
    }
}

} // namespace perfrig
