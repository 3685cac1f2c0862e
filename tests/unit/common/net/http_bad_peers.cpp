// Peers that break the rules, slowly or all at once; and how the server ends.
#include "tests/unit/common/net/net_support.hpp"

using namespace perfrig;
using namespace perfrig::net_test;

TEST_CASE("malformed requests get 400 and end the connection, never the server") {
    boost::asio::io_context io;
    EchoServer echo(io);
    const std::string rows[] = {
        "\r\n\r\n\x01\x02\x03\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // TLS
    };
    for (const auto& row : rows) {
        CAPTURE(row);
        RawPeer peer(io, echo.server->port());
        run(io, [&]() -> awaitable<void> {
            co_await peer.send(row);
            const auto got = co_await peer.read_all(soon());
            CHECK(got.starts_with("HTTP/1.1 400 "));
        });
    }
    CHECK(echo.handled == 0);
    run(io, [&]() -> awaitable<void> { CHECK(co_await http_request(echo.url("/x"), HttpCall(), soon())); });
}

TEST_CASE("targets that are not understood get 400 and the connection goes on") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpClient client(echo.url());
        for (const char* target : {"/a/../b", "/%zz", "/?a=1&a=2", "//", "/%00"}) {
            CAPTURE(target);
            const auto answer = co_await client.request(target, HttpCall(), soon());
            REQUIRE(answer);
            CHECK(answer->status == 400);
        }
        CHECK(echo.handled == 0);
        CHECK(echo.server->connections() == 1);
    });
    RawPeer peer(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        co_await peer.send("GET / HTTP/1.1\r\n\r\n"); // no Host
        CHECK((co_await peer.read_some(soon())).starts_with("HTTP/1.1 400 "));
    });
}

TEST_CASE("a header over the limit gets 431, in one field or in thousands") {
    boost::asio::io_context io;
    EchoServer echo(io);
    std::string many;
    for (int i = 0; i < 20'000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
    const std::string rows[] = {"X: " + std::string(100'000, 'y') + "\r\n", many};
    for (const auto& row : rows) {
        RawPeer peer(io, echo.server->port());
        run(io, [&]() -> awaitable<void> {
            co_await peer.send("GET / HTTP/1.1\r\nHost: a\r\n" + row + "\r\n");
            CHECK((co_await peer.read_all(soon())).starts_with("HTTP/1.1 431 "));
        });
    }
    CHECK(echo.handled == 0);
}

TEST_CASE("a peer that sends its header or body drop by drop is cut off at the deadline for the whole of it") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.header = options.body = Milliseconds(300);
    EchoServer echo(io, options);
    const std::string starts[] = {"GET / HTTP/1.1\r\nX: ",
                                  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"};
    for (const auto& start : starts) {
        CAPTURE(start);
        RawPeer peer(io, echo.server->port());
        run(io, [&]() -> awaitable<void> {
            const auto begin = std::chrono::steady_clock::now();
            co_await peer.send(start);
            std::string got = "TIMEOUT";
            while (got == "TIMEOUT" && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
                co_await peer.send("x"); // each drop is in time; the whole is not
                got = co_await peer.read_some(soon(50));
            }
            CHECK(got.empty()); // end of file or reset
            CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(300));
        });
    }
    CHECK(echo.handled == 0);
}

TEST_CASE("a body that comes too slowly is cut off long before the deadline for the whole of it, a fast one is not") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.body_grace = Milliseconds(200);
    options.least_body_bytes_per_second = 10'000;
    EchoServer echo(io, options);
    RawPeer slow(io, echo.server->port()), fast(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        const auto begin = std::chrono::steady_clock::now();
        co_await slow.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
        std::string got = "TIMEOUT";
        while (got == "TIMEOUT" && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
            co_await slow.send("xxxxx"); // a hundred a second
            got = co_await slow.read_some(soon(50));
        }
        CHECK(got.empty());
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
        co_await fast.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        for (int i = 0; i < 10; ++i) { // beyond the grace, but at the rate
            co_await fast.send(std::string(10'000, 'x'));
            co_await sleep_until(soon(40));
        }
        CHECK((co_await fast.read_some(soon())).ends_with("POST /x 100000"));
    });
    CHECK(echo.handled == 1);
}

TEST_CASE("strangers that take every place keep no newcomer out, and push out nobody who is known") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.most_connections = 20;
    EchoServer echo(io, options);
    // Of each kind more than there are places: says nothing, half a header, half a body, was answered and stays.
    const std::string kinds[] = {"",
                                 "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
                                 "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};
    run(io, [&]() -> awaitable<void> {
        const auto known = [] {
            HttpCall call;
            call.headers.add("Authorization", "Bearer good");
            return call;
        };
        HttpClient friendly(echo.url());
        REQUIRE(co_await friendly.request("/x", known(), soon()));
        Url socket_url = echo.url("/ws");
        socket_url.scheme = UrlScheme::ws;
        HttpHeaders good{{"Authorization", "Bearer good"}};
        auto socket = co_await connect_websocket(socket_url, std::move(good), soon());
        REQUIRE(socket);
        std::optional<Result<HttpResponse>> slow;
        TaskGroup clients(io.get_executor());
        auto ask = [](Url url, std::optional<Result<HttpResponse>>* out) -> awaitable<void> {
            out->emplace(co_await http_request(std::move(url), HttpCall(), soon()));
        };
        clients.spawn("a stranger whose request is worked", ask(echo.url("/slow"), &slow));
        while (echo.handled < 2) co_await sleep_until(soon(1));

        std::vector<std::unique_ptr<RawPeer>> strangers;
        for (int round = 0; round < 25; ++round)
            for (const std::string& kind : kinds) {
                strangers.push_back(std::make_unique<RawPeer>(io, echo.server->port()));
                co_await strangers.back()->send(kind);
                co_await sleep_until(soon(1));
            }
        CHECK(echo.server->connections() == 20);
        for (int newcomer = 0; newcomer < 5; ++newcomer) {
            const auto begin = std::chrono::steady_clock::now();
            const auto answer = co_await http_request(echo.url("/x"), HttpCall(), soon());
            REQUIRE(answer);
            CHECK(answer->status == 200);
            CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
        }
        const int handled = echo.handled;
        REQUIRE(co_await friendly.request("/x", known(), soon()));
        CHECK(echo.handled == handled + 1);
        REQUIRE(co_await socket->write(false, "still there", soon()));
        const auto echoed = co_await socket->read(soon());
        REQUIRE(echoed);
        CHECK(echoed->data == "still there");
        CHECK(co_await clients.wait(soon()));
        REQUIRE(slow);
        REQUIRE(*slow);
        CHECK((*slow)->status == 200);
        co_await socket->close("", soon());
    });
}

TEST_CASE("a connection that asks nothing is closed at the idle deadline") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.idle = Milliseconds(100);
    EchoServer echo(io, options);
    RawPeer peer(io, echo.server->port());
    run(io, [&]() -> awaitable<void> { CHECK(co_await peer.read_all(soon()) == ""); });
}

TEST_CASE("a peer that does not read its answer is dropped at the write deadline") {
    boost::asio::io_context io;
    HttpServerOptions options;
    options.write = Milliseconds(200);
    options.most_body_bytes = [](const std::string&, const std::string&) -> std::size_t { return 32 << 20; };
    EchoServer echo(io, options);
    RawPeer peer(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        co_await peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n" +
                           std::string(32 << 20, 'x')); // more than socket buffers hold
        const auto deadline = soon();
        while (echo.server->connections() > 0 && !deadline.passed()) co_await sleep_until(soon(10));
        CHECK(echo.server->connections() == 0);
        CHECK(echo.handled == 1);
    });
}

TEST_CASE("requests sent without waiting for answers are answered in order") {
    boost::asio::io_context io;
    EchoServer echo(io);
    RawPeer peer(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        co_await peer.send(
            "GET /one HTTP/1.1\r\nHost: a\r\n\r\nPOST /two HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"
            "GET /three HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        const auto got = co_await peer.read_all(soon());
        const auto one = got.find("GET /one 0"), two = got.find("POST /two 2"), three = got.find("GET /three 0");
        CHECK(one < two);
        CHECK(two < three);
        CHECK(three != std::string::npos);
    });
}

TEST_CASE("stopping lets a running request finish, closes idle connections and takes no new ones") {
    boost::asio::io_context io;
    EchoServer echo(io);
    run(io, [&]() -> awaitable<void> {
        HttpClient idle(echo.url());
        REQUIRE(co_await idle.request("/x", HttpCall(), soon()));
        std::optional<Result<HttpResponse>> slow;
        TaskGroup clients(io.get_executor());
        auto ask = [](Url url, std::optional<Result<HttpResponse>>* out) -> awaitable<void> {
            out->emplace(co_await http_request(std::move(url), HttpCall(), soon()));
        };
        clients.spawn("a slow request", ask(echo.url("/slow"), &slow));
        while (echo.handled < 2) co_await sleep_until(soon(1));
        const auto url = echo.url("/x");
        CHECK(co_await echo.server->stop(soon()));
        CHECK(echo.server->connections() == 0);
        CHECK(co_await clients.wait(soon()));
        REQUIRE(slow);
        REQUIRE(*slow);
        CHECK((*slow)->body == "GET /slow 0");
        CHECK_FALSE(co_await http_request(url, HttpCall(), soon()));
    });
}

TEST_CASE("stopping cancels what runs beyond its deadline") {
    boost::asio::io_context io;
    EchoServer echo(io);
    RawPeer peer(io, echo.server->port());
    run(io, [&]() -> awaitable<void> {
        co_await peer.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
        while (echo.handled < 1) co_await sleep_until(soon(1));
        const auto start = std::chrono::steady_clock::now();
        CHECK(co_await echo.server->stop(soon(100)));
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
        CHECK(echo.server->connections() == 0);
        CHECK(co_await peer.read_all(soon()) == "");
    });
}

TEST_CASE("listening on a taken port or on a name is refused with a reason") {
    boost::asio::io_context io;
    EchoServer echo(io);
    HttpServerOptions taken;
    taken.port = echo.server->port();
    const auto second = HttpServer::listen(io.get_executor(), taken, {});
    REQUIRE_FALSE(second);
    CHECK(second.error().kind == ErrorKind::unavailable);
    HttpServerOptions name;
    name.address = "localhost";
    CHECK_FALSE(HttpServer::listen(io.get_executor(), name, {}));
    CHECK(echo.server->url() == "http://127.0.0.1:" + std::to_string(taken.port));
}
