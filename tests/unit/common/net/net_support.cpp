#include "tests/unit/common/net/net_support.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace perfrig::net_test {

namespace asio = boost::asio;
using asio::ip::tcp;

void run(asio::io_context& io, std::function<awaitable<void>()> body) {
    bool ended = false;
    std::exception_ptr thrown;
    asio::co_spawn(io, body(), [&](std::exception_ptr e) {
        ended = true;
        thrown = std::move(e);
        io.stop();
    });
    io.restart();
    io.run_for(std::chrono::seconds(30));
    if (thrown) std::rethrow_exception(thrown);
    REQUIRE(ended);
}

EchoServer::EchoServer(asio::io_context& io, HttpServerOptions options) {
    HttpHandler handler = [this](HttpRequest request) -> awaitable<HttpResponse> {
        ++handled;
        if (request.path == "/boom") throw std::runtime_error("the handler broke");
        if (request.path == "/slow") co_await sleep_until(soon(200));
        if (request.path == "/never") co_await sleep_until(soon(3'600'000));
        if (request.path == "/echo") co_return text_response(200, std::move(request.body));
        if (request.path == "/split") {
            HttpResponse out;
            out.headers.add("X-Bad", "one\r\nX-Injected: two");
            co_return out;
        }
        HttpResponse out =
            text_response(200, request.method + " " + request.path + " " + std::to_string(request.body.size()));
        out.known_peer = request.bearer_token() == "good";
        co_return out;
    };
    UpgradeHandler upgrade = [this](HttpRequest request) -> awaitable<UpgradeAnswer> {
        UpgradeAnswer answer;
        if (request.bearer_token() != "good") {
            answer = problem_response(401, "no such token");
            co_return answer;
        }
        answer = WebSocketSession([this](WebSocket socket) -> awaitable<void> {
            for (;;) {
                auto message = co_await socket.read(soon(60'000));
                if (!message) {
                    last_session_error = message.error().text();
                    break;
                }
                if (!co_await socket.write(message->binary, std::move(message->data), soon())) break;
            }
            ++sessions_ended;
        });
        co_return answer;
    };
    auto listening = HttpServer::listen(io.get_executor(), std::move(options), handler, upgrade);
    REQUIRE(listening);
    server = std::move(*listening);
}

Url EchoServer::url(const std::string& target) const {
    auto parsed = parse_url(server->url());
    REQUIRE(parsed);
    return parsed->with_target(target);
}

RawPeer::RawPeer(asio::io_context& io, std::uint16_t port) : socket_(io) {
    socket_.connect(tcp::endpoint(asio::ip::address_v4::loopback(), port)); // the kernel's backlog takes it at once
}

awaitable<void> RawPeer::send(std::string bytes) {
    boost::system::error_code ignored;
    co_await asio::async_write(socket_, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ignored));
}

awaitable<std::string> RawPeer::read_some(Deadline deadline) {
    std::string out(64 << 10, '\0');
    std::size_t got = 0;
    auto read = [](tcp::socket* socket, std::string* into, std::size_t* size) -> awaitable<void> {
        boost::system::error_code error;
        *size = co_await socket->async_read_some(asio::buffer(*into), asio::redirect_error(asio::use_awaitable, error));
        if (error && *size == 0) into->clear();
    };
    if (!co_await finish_by(read(&socket_, &out, &got), deadline)) co_return "TIMEOUT";
    out.resize(got);
    co_return out;
}

awaitable<std::string> RawPeer::read_all(Deadline deadline) {
    std::string all;
    for (;;) {
        const std::string part = co_await read_some(deadline);
        all += part;
        if (part.empty() || part == "TIMEOUT") co_return all;
    }
}

void RawPeer::close() { socket_.close(); }

SilentServer::SilentServer(asio::io_context& io) : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}

} // namespace perfrig::net_test
