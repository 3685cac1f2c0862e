#include "common/net/url.hpp"

#include "common/net/http_types.hpp"
#include "tests/support/doctest.hpp"

using namespace perfrig;

TEST_CASE("a URL is taken apart and printed again") {
    struct Row {
        std::string text, host;
        int port;
        std::string target, again;
    };
    const Row rows[] = {
        {"http://lab-1", "lab-1", 80, "/", "http://lab-1/"},
        {"http://lab-1:8080/api?x=1", "lab-1", 8080, "/api?x=1", "http://lab-1:8080/api?x=1"},
        {"http://10.0.2.2:80", "10.0.2.2", 80, "/", "http://10.0.2.2/"},
        {"ws://[::1]:9000/agent/v1/link", "::1", 9000, "/agent/v1/link", "ws://[::1]:9000/agent/v1/link"},
        {"https://a_b.example", "a_b.example", 443, "/", "https://a_b.example/"},
        {"wss://x?y", "x", 443, "/?y", "wss://x/?y"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        const auto url = parse_url(row.text);
        REQUIRE(url);
        CHECK(url->host == row.host);
        CHECK(url->port == row.port);
        CHECK(url->target == row.target);
        CHECK(url->text() == row.again);
        CHECK(parse_url(url->text()).value() == *url);
    }
}

TEST_CASE("a URL that is not understood whole is refused") {
    for (const char* text : {"",
                             "lab-1",
                             "lab-1:80",
                             "ftp://lab",
                             "HTTP://lab",
                             "http:/lab",
                             "http://",
                             "http:///x",
                             "http://:80",
                             "http://lab:",
                             "http://lab:0",
                             "http://lab:65536",
                             "http://lab:99999999999",
                             "http://lab:8o",
                             "http://lab:-1",
                             "http://user@lab",
                             "http://user:secret@lab",
                             "http://lab/#top",
                             "http://lab/a b",
                             "http://lab/\n",
                             "http://l\xc3\xa4"
                             "b",
                             "http://[::1",
                             "http://[::1]8",
                             "http://[lab]",
                             "http://::1",
                             "http://a..b",
                             "http://.lab",
                             "http://-lab",
                             "http://la*b"}) {
        CAPTURE(text);
        const auto url = parse_url(text);
        REQUIRE_FALSE(url);
        CHECK(url.error().kind == ErrorKind::bad_input);
    }
    CHECK_FALSE(parse_url("http://lab/" + std::string(9000, 'x')));
}

TEST_CASE("host:port needs both and may name port 0") {
    CHECK(parse_host_port("127.0.0.1:0")->port == 0);
    CHECK(parse_host_port("[::1]:9090")->host == "::1");
    CHECK(parse_host_port("lab-3:65535")->port == 65535);
    for (const char* text :
         {"", "lab", ":80", "lab:", "lab:65536", "::1:80", "[::1]", "lab:80x", "lab:80:90", "l b:1"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_host_port(text));
    }
}

TEST_CASE("percent escapes go both ways and half ones are refused") {
    const std::string all = "a/b c%d~e-f.g_h\xff+&=?";
    CHECK(percent_encode(all) == "a%2Fb%20c%25d~e-f.g_h%FF%2B%26%3D%3F");
    CHECK(percent_decode(percent_encode(all)).value() == all);
    CHECK(percent_decode("%7e").value() == "~");
    for (const char* text : {"%", "%4", "%4g", "abc%", "%%41", "%00"}) {
        CAPTURE(text);
        CHECK_FALSE(percent_decode(text));
    }
}

TEST_CASE("a request target becomes path segments and query values") {
    const auto parts = parse_target("/api/v1/experiments/fruits%2Fscaling?after=a%2Bb&limit=5&flag&text=a+b");
    REQUIRE(parts);
    CHECK(parts->path == "/api/v1/experiments/fruits%2Fscaling");
    CHECK(parts->segments == std::vector<std::string>{"api", "v1", "experiments", "fruits/scaling"});
    const std::map<std::string, std::string> query{{"after", "a+b"}, {"limit", "5"}, {"flag", ""}, {"text", "a b"}};
    CHECK(parts->query == query);
    CHECK(parse_target("/%e2%82%ac/%F0%9F%8D%8E")->segments ==
          std::vector<std::string>{"\xe2\x82\xac", "\xf0\x9f\x8d\x8e"});
    CHECK(parse_target("/")->segments.empty());
    CHECK(parse_target("/runs/")->segments == std::vector<std::string>{"runs"});
    for (const char* text : {"",          "*",       "runs",       "http://x/",     "//",
                             "/a//b",     "/a/../b", "/./a",       "/%2e%2E/etc",   "/%zz",
                             "/?a=1&a=2", "/?=1",    "/?a=%f",     "/#x",           "/%ff",
                             "/\xc3",     "/%c0%80", "/%ed%a0%80", "/%f4%90%80%80", "/?a=%ff",
                             "/?%e2%82=1"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_target(text));
    }
}

TEST_CASE("loopback is what only this machine can reach") {
    for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"}) {
        CAPTURE(host);
        CHECK(is_loopback(host));
    }
    for (const char* host :
         {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "localhost.example", "", "127.0.0", "::ffff:10.0.0.1"}) {
        CAPTURE(host);
        CHECK_FALSE(is_loopback(host));
    }
}

TEST_CASE("header names compare without regard to case and a bearer token is one word") {
    HttpRequest request;
    request.headers.add("AUTHORIZATION", "bearer abc123");
    CHECK(request.bearer_token() == "abc123");
    CHECK(request.headers.find("authorization") == "bearer abc123");
    for (const char* value : {"abc123", "Basic abc", "Bearer", "Bearer ", "Bearer a b", "Bearer a,b"}) {
        CAPTURE(value);
        request.headers.set("Authorization", value);
        CHECK(request.headers.fields().size() == 1);
        CHECK_FALSE(request.bearer_token());
    }
}

TEST_CASE("an error becomes problem+json with its remedy and survives bytes that are not UTF-8") {
    const auto response =
        problem_response(fail(ErrorKind::conflict, "cancel", "run 7", "it has \xff ended", "look first"));
    CHECK(response.status == 409);
    CHECK(response.content_type == "application/problem+json");
    CHECK(response.body.find("\"remedy\":\"look first\"") != std::string::npos);
    CHECK(response.body.find("\"title\":\"Conflict\"") != std::string::npos);
    CHECK(kind_of_status(status_of(ErrorKind::unavailable)) == ErrorKind::unavailable);
    CHECK(kind_of_status(401) == ErrorKind::forbidden);
}
