#include "common/net/websocket.hpp"

#include "tests/unit/common/net/net_support.hpp"

using namespace perfrig;
using namespace perfrig::net_test;

namespace {

awaitable<Result<WebSocket>> dial(const EchoServer& echo, std::string token, WebSocketOptions options = {},
                                  int* status = nullptr) {
    Url url = echo.url("/ws");
    url.scheme = UrlScheme::ws;
    HttpHeaders headers;
    headers.add("Authorization", "Bearer " + token);
    return connect_websocket(url, std::move(headers), soon(), options, status);
}

std::string patterned(std::size_t bytes, unsigned seed) {
    std::string out(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 31 + i / 253 + seed);
    return out;
}

} // namespace

TEST_CASE("text and binary of every size come back as they went") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        for (const std::size_t size : {0, 1, 125, 126, 65'535, 65'536, 1 << 20, 4 << 20}) {
            for (const bool binary : {false, true}) {
                CAPTURE(size);
                const std::string data = binary ? patterned(size, 3) : std::string(size, 'a');
                REQUIRE(co_await socket->write(binary, data, soon()));
                const auto message = co_await socket->read(soon());
                REQUIRE(message);
                CHECK(message->binary == binary);
                CHECK((message->data == data));
            }
        }
        co_await socket->close("done", soon());
        CHECK_FALSE(socket->open());
        while (echo.sessions_ended == 0) co_await sleep_until(soon(1));
        CHECK(echo.last_session_error.find("code 1000: done") != std::string::npos);
    });
}

TEST_CASE("many writers at once keep their frames whole") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        constexpr int writers = 20, each = 10;
        int written = 0;
        TaskGroup tasks(io.get_executor());
        auto write = [](WebSocket* to, unsigned seed, int* count) -> awaitable<void> {
            for (int i = 0; i < each; ++i) {
                std::string data = patterned(1 + seed * 4'999, seed);
                if (co_await to->write(true, std::move(data), soon())) ++*count;
            }
        };
        for (unsigned w = 0; w < writers; ++w) tasks.spawn("a writer", write(&*socket, w, &written));
        std::map<std::string, int> seen;
        for (int i = 0; i < writers * each; ++i) {
            auto message = co_await socket->read(soon());
            REQUIRE(message);
            ++seen[message->data];
        }
        CHECK(co_await tasks.wait(soon()));
        CHECK(written == writers * each);
        CHECK(seen.size() == writers);
        for (unsigned w = 0; w < writers; ++w) CHECK(seen[patterned(1 + w * 4'999, w)] == each);
    });
}

TEST_CASE("a read whose deadline passes loses nothing") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        const auto nothing = co_await socket->read(soon(20));
        REQUIRE_FALSE(nothing);
        CHECK(nothing.error().kind == ErrorKind::timed_out);
        REQUIRE(co_await socket->write(false, "late", soon()));
        const auto message = co_await socket->read(soon());
        REQUIRE(message);
        CHECK(message->data == "late");
    });
}

TEST_CASE("an upgrade without a good token is refused with 401 before it happens") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        int status = -1;
        auto socket = co_await dial(echo, "bad", {}, &status);
        REQUIRE_FALSE(socket);
        CHECK(status == 401);
        CHECK(socket.error().kind == ErrorKind::forbidden);
        CHECK(socket.error().text().find("no such token") != std::string::npos);
    });
}

TEST_CASE("a peer that vanishes without a word is noticed at the idle deadline, also while nobody reads") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.websocket.idle = Milliseconds(200);
    EchoServer echo(io, options);
    RawPeer peer(io, echo.server->port()); // upgrades, then answers no ping
    run(io, [&]() -> awaitable<void> {
        co_await peer.send("GET /ws HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\nConnection: Upgrade\r\n"
                           "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
        CHECK((co_await peer.read_some(soon())).starts_with("HTTP/1.1 101 "));
        const auto deadline = soon();
        while (echo.sessions_ended == 0 && !deadline.passed()) co_await sleep_until(soon(10));
        CHECK(echo.sessions_ended == 1);
        CHECK(echo.last_session_error.find("has sent nothing for 200 ms") != std::string::npos);
    });
}

TEST_CASE("pings keep a silent connection alive far beyond the idle deadline") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.websocket.idle = Milliseconds(200);
    EchoServer echo(io, options);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        const auto nothing = co_await socket->read(soon(1'000));
        REQUIRE_FALSE(nothing);
        CHECK(nothing.error().kind == ErrorKind::timed_out);
        CHECK(socket->open());
        CHECK(echo.sessions_ended == 0);
    });
}

TEST_CASE("a peer whose connection breaks ends the session at once") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        socket->drop();
        const auto gone = co_await socket->read(soon());
        REQUIRE_FALSE(gone);
        CHECK(gone.error().kind == ErrorKind::unavailable);
        CHECK_FALSE(co_await socket->write(false, "x", soon()));
        const auto deadline = soon();
        while (echo.sessions_ended == 0 && !deadline.passed()) co_await sleep_until(soon(1));
        CHECK(echo.sessions_ended == 1);
    });
}

TEST_CASE("a message over the size limit ends the connection, not the server") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.websocket.most_message_bytes = 1000;
    EchoServer echo(io, options);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        REQUIRE(co_await socket->write(true, std::string(1000, 'x'), soon()));
        REQUIRE(co_await socket->read(soon()));
        REQUIRE(co_await socket->write(true, std::string(1001, 'x'), soon()));
        const auto cut = co_await socket->read(soon());
        REQUIRE_FALSE(cut);
        CHECK(cut.error().kind == ErrorKind::unavailable);
        CHECK(echo.last_session_error.find("more than 1000 bytes") != std::string::npos);
        CHECK(co_await dial(echo, "good"));
    });
}

TEST_CASE("a peer that does not read fills the queue: writers are refused, then time out, and the bound holds") {
    boost::asio::io_context io;
    HttpServerOptions server;
    server.websocket.read_ahead_bytes = 1; // the echo session stops reading when it can't write
    EchoServer echo(io, server);
    run(io, [&]() -> awaitable<void> {
        WebSocketOptions options;
        options.read_ahead_bytes = 1; // and we read nothing: both directions fill up
        options.write_queue_bytes = 3 << 20;
        auto socket = co_await dial(echo, "good", options);
        REQUIRE(socket);
        int refused = 0, timed_out = 0;
        TaskGroup tasks(io.get_executor());
        auto write = [](WebSocket* to, int* full, int* late) -> awaitable<void> {
            auto wrote = co_await to->write(true, std::string(1 << 20, 'x'), soon(1'000));
            if (wrote) co_return;
            ++*(wrote.error().kind == ErrorKind::timed_out ? late : full);
        };
        // For as long as the kernel still takes some: how much that is, and how fast, is the machine's affair.
        for (const Deadline until = soon(20'000); timed_out == 0 && !until.passed();) {
            tasks.spawn("a writer", write(&*socket, &refused, &timed_out));
            co_await sleep_until(soon(2));
            CHECK(socket->queued_bytes() <= 3 << 20);
        }
        CHECK(co_await tasks.wait(soon()));
        CHECK(refused > 0);
        CHECK(timed_out > 0);
        CHECK_FALSE(socket->open()); // the frame under way could not be taken back
    });
}

TEST_CASE("a slow reader is not taken for a vanished peer") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        WebSocketOptions options;
        options.read_ahead_bytes = 10;
        options.idle = Milliseconds(100);
        auto socket = co_await dial(echo, "good", options);
        REQUIRE(socket);
        for (int i = 0; i < 5; ++i) REQUIRE(co_await socket->write(false, std::string(100, 'a'), soon()));
        co_await sleep_until(soon(500));
        for (int i = 0; i < 5; ++i) CHECK(co_await socket->read(soon()));
        CHECK(socket->open());
    });
}

TEST_CASE("stopping the server closes WebSockets with a reason that both ends see") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        auto socket = co_await dial(echo, "good");
        REQUIRE(socket);
        REQUIRE(co_await socket->write(false, "x", soon()));
        REQUIRE(co_await socket->read(soon()));
        const auto start = std::chrono::steady_clock::now();
        CHECK(co_await echo.server->stop(soon()));
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
        CHECK(echo.sessions_ended == 1);
        CHECK(echo.last_session_error.find("the server is stopping") != std::string::npos);
        const auto gone = co_await socket->read(soon());
        REQUIRE_FALSE(gone);
        CHECK(gone.error().text().find("code 1001: the server is stopping") != std::string::npos);
    });
}
