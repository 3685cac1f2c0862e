// Our client against our server, over real sockets.
#include "tests/unit/common/net/net_support.hpp"

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <thread>

using namespace perfrig;
using namespace perfrig::net_test;

TEST_CASE("a request reaches the handler and its answer comes back") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpCall call;
        call.method = "PUT";
        call.body = "hello";
        call.content_type = "text/plain";
        const auto answer = co_await http_request(echo.url("/a/b?x=1"), call, soon());
        REQUIRE(answer);
        CHECK(answer->status == 200);
        CHECK(answer->body == "PUT /a/b 5");
        CHECK(answer->content_type == "text/plain; charset=utf-8");
        CHECK(answer->headers.find("connection") == "close");
    });
}

TEST_CASE("a body of one MiB goes there and back whole") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpCall call;
        call.method = "POST";
        for (int i = 0; i < 1 << 20; ++i) call.body += static_cast<char>(i * 7 + i / 251);
        const std::string sent = call.body;
        const auto answer = co_await http_request(echo.url("/echo"), std::move(call), soon());
        REQUIRE(answer);
        CHECK(answer->status == 200);
        CHECK(answer->body == sent);
    });
}

TEST_CASE("the client keeps its connection and replaces one that the server closed") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.idle = Milliseconds(150);
    EchoServer echo(io, options);
    run(io, [&]() -> awaitable<void> {
        HttpClient client(echo.url());
        for (int i = 0; i < 3; ++i) {
            const auto answer = co_await client.request("/x", HttpCall(), soon());
            REQUIRE(answer);
            CHECK(echo.server->connections() == 1);
        }
        while (echo.server->connections() > 0) co_await sleep_until(soon(10)); // the idle deadline ends it
        HttpCall call;
        call.method = "POST"; // never sent twice, so the closed connection must be noticed beforehand
        const auto answer = co_await client.request("/x", std::move(call), soon());
        REQUIRE(answer);
        CHECK(answer->status == 200);
        CHECK(echo.handled == 4);
    });
}

TEST_CASE("HEAD gives the length and no body, and the connection goes on") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpClient client(echo.url());
        HttpCall call;
        call.method = "HEAD";
        const auto head = co_await client.request("/x", std::move(call), soon());
        REQUIRE(head);
        CHECK(head->body.empty());
        CHECK(head->headers.find("content-length") == "9");
        const auto next = co_await client.request("/x", HttpCall(), soon());
        REQUIRE(next);
        CHECK(next->body == "GET /x 0");
        CHECK(echo.server->connections() == 1);
    });
}

TEST_CASE("a body over the limit of its route gets 413, which a client that sends first can still read") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.most_body_bytes = [](const std::string& method, const std::string& path) -> std::size_t {
        return method == "PUT" && path == "/big" ? 12 << 20 : 1000;
    };
    EchoServer echo(io, options);
    run(io, [&]() -> awaitable<void> {
        HttpCall call;
        call.method = "PUT";
        call.body.assign(10 << 20, 'x');
        HttpCall again = call;
        const auto refused = co_await http_request(echo.url("/small?to=/big"), std::move(call), soon());
        REQUIRE(refused);
        CHECK(refused->status == 413);
        CHECK(refused->body.find("1000") != std::string::npos);
        CHECK(echo.handled == 0);
        const auto taken = co_await http_request(echo.url("/big?x"), std::move(again), soon());
        REQUIRE(taken);
        CHECK(taken->body == "PUT /big 10485760");
    });
}

TEST_CASE("a chunked body over the limit gets 413 too") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.most_body_bytes = [](const std::string&, const std::string&) -> std::size_t { return 10; };
    EchoServer echo(io, options);
    RawPeer peer(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        co_await peer.send("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n");
        CHECK((co_await peer.read_all(soon())).starts_with("HTTP/1.1 413 "));
        CHECK(echo.handled == 0);
    });
}

TEST_CASE("a client that asks before it sends its body is told to go on, or refused before it does") {
    boost::asio::io_context io;
    EchoServer echo(io);
    RawPeer small(io, echo.server->port());
    RawPeer big(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        co_await small.send("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
        CHECK(co_await small.read_some(soon()) == "HTTP/1.1 100 Continue\r\n\r\n");
        co_await small.send("abc");
        CHECK((co_await small.read_some(soon())).ends_with("PUT /x 3"));
        co_await big.send("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\nExpect: 100-continue\r\n\r\n");
        CHECK((co_await big.read_some(soon())).starts_with("HTTP/1.1 413 "));
    });
}

TEST_CASE("an exception in a handler is an answer of 500 and the connection goes on") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpClient client(echo.url());
        for (const char* target : {"/boom", "/split"}) {
            const auto answer = co_await client.request(target, HttpCall(), soon());
            REQUIRE(answer);
            CHECK(answer->status == 500);
            CHECK(answer->content_type == "application/problem+json");
            CHECK_FALSE(answer->headers.has("X-Injected"));
        }
        const auto next = co_await client.request("/x", HttpCall(), soon());
        REQUIRE(next);
        CHECK(next->status == 200);
        CHECK(echo.server->connections() == 1);
    });
}

TEST_CASE("a handler that does not end is cancelled and answered for") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.handler = Milliseconds(50);
    EchoServer echo(io, options);
    run(io, [&]() -> awaitable<void> {
        const auto answer = co_await http_request(echo.url("/never"), HttpCall(), soon());
        REQUIRE(answer);
        CHECK(answer->status == 503);
    });
}

TEST_CASE("requests on many connections are handled at the same time") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        const auto start = std::chrono::steady_clock::now();
        int good = 0;
        TaskGroup clients(io.get_executor());
        for (int i = 0; i < 100; ++i) {
            auto one = [](Url url, int* count) -> awaitable<void> {
                const auto answer = co_await http_request(std::move(url), HttpCall(), soon());
                if (answer && answer->status == 200) ++*count;
            };
            clients.spawn("a client", one(echo.url("/slow"), &good));
        }
        CHECK(co_await clients.wait(soon()));
        CHECK(good == 100);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10)); // one by one: 20 s
    });
}

TEST_CASE(
    "one connection more than allowed is told so where all are known peers', and there is room again when one goes") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.most_connections = 2;
    EchoServer echo(io, options);
    run(io, [&]() -> awaitable<void> {
        auto first = std::make_unique<HttpClient>(echo.url());
        HttpClient second(echo.url());
        const auto known = [] {
            HttpCall call;
            call.headers.add("Authorization", "Bearer good");
            return call;
        };
        REQUIRE(co_await first->request("/x", known(), soon()));
        REQUIRE(co_await second.request("/x", known(), soon()));
        const auto refused = co_await http_request(echo.url("/x"), HttpCall(), soon());
        REQUIRE(refused);
        CHECK(refused->status == 503);
        first.reset();
        while (echo.server->connections() > 1) co_await sleep_until(soon(5));
        const auto taken = co_await http_request(echo.url("/x"), HttpCall(), soon());
        REQUIRE(taken);
        CHECK(taken->status == 200);
    });
}

TEST_CASE("a client gives up on a server that never answers, at its deadline") {
    boost::asio::io_context io;
    SilentServer silent(io);
    const auto url = parse_url("http://127.0.0.1:" + std::to_string(silent.port()) + "/");
    run(io, [&]() -> awaitable<void> {
        const auto start = std::chrono::steady_clock::now();
        const auto answer = co_await http_request(*url, HttpCall(), soon(100));
        REQUIRE_FALSE(answer);
        CHECK(answer.error().kind == ErrorKind::timed_out);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
        auto ws = *url;
        ws.scheme = UrlScheme::ws;
        const auto socket = co_await connect_websocket(ws, HttpHeaders(), soon(100));
        REQUIRE_FALSE(socket);
        CHECK(socket.error().kind == ErrorKind::timed_out);
    });
}

TEST_CASE("what can't be called is refused with a reason: no listener, no such name, TLS, a line break in a header") {
    boost::asio::io_context io;
    std::uint16_t closed = 0;
    {
        SilentServer gone(io);
        closed = gone.port();
    }
    run(io, [&]() -> awaitable<void> {
        const auto url = parse_url("http://127.0.0.1:" + std::to_string(closed) + "/");
        const auto nobody = co_await http_request(*url, HttpCall(), soon());
        REQUIRE_FALSE(nobody);
        CHECK(nobody.error().kind == ErrorKind::unavailable);
        const auto unknown = co_await http_request(*parse_url("http://no-such-host.invalid/"), HttpCall(), soon(5000));
        REQUIRE_FALSE(unknown);
        const auto secure = co_await http_request(*parse_url("https://127.0.0.1/"), HttpCall(), soon());
        REQUIRE_FALSE(secure);
        CHECK(secure.error().kind == ErrorKind::bad_input);
        CHECK(secure.error().text().find("TLS") != std::string::npos);
        HttpCall split;
        split.headers.add("X", "a\r\nY: b");
        const auto injected = co_await http_request(*url, std::move(split), soon());
        REQUIRE_FALSE(injected);
        CHECK(injected.error().kind == ErrorKind::bad_input);
    });
}

TEST_CASE("an answer longer than the caller takes is an error") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpCall call;
        call.method = "POST";
        call.body.assign(5000, 'x');
        call.most_response_bytes = 4999;
        const auto answer = co_await http_request(echo.url("/echo"), std::move(call), soon());
        REQUIRE_FALSE(answer);
        CHECK(answer.error().text().find("4999") != std::string::npos);
    });
}

TEST_CASE("the blocking client needs no event loop of the caller's") {
    boost::asio::io_context io;
    EchoServer echo(io);
    Url url = echo.url("/x");
    url.host = "localhost"; // by name: goes through the resolver
    Result<HttpResponse> answer = fail(ErrorKind::internal, "", "", "never called");
    std::thread caller([&] {
        answer = http_request_blocking(url, HttpCall(), soon());
        boost::asio::co_spawn(
            io,
            [&]() -> awaitable<void> {
                io.stop();
                co_return;
            },
            [](std::exception_ptr) {});
    });
    io.run_for(std::chrono::seconds(20));
    caller.join();
    REQUIRE(answer);
    CHECK(answer->body == "GET /x 0");
}
