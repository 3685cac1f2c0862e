// The uploader against a stand-in for the controller's artifact routes; the real ones are used in tests/integration.
#include "agent/session/uploader.hpp"
#include "tests/unit/agent/session/spool_rig.hpp"

#include "common/base/file_tree.hpp"
#include "common/net/http_server.hpp"
#include "common/net/timeout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

using namespace perfrig;
using perfrig::testing::TempFolder;
namespace asio = boost::asio;

namespace {

struct ArtifactServer {
    std::string content;              // stored so far
    std::size_t expected = 0;         // 0: no offer is stored yet
    int fail_puts = 0;                // so many PUTs are answered 503
    std::size_t puts = 0, others = 0; // others: looks for another artifact
    std::vector<std::size_t> part_sizes;

    asio::awaitable<HttpResponse> serve(HttpRequest request) {
        if (request.bearer_token() != std::optional<std::string>("t")) co_return problem_response(401, "");
        if (request.segments.at(5) == "a/asked for later") ++others;
        if (request.segments.at(5) == "a/refused") co_return problem_response(422, "never");
        if (request.segments.at(5) != "logs/a b.txt" || expected == 0) co_return problem_response(404, "no offer");
        if (request.method == "PUT") {
            ++puts;
            if (fail_puts-- > 0) co_return problem_response(503, "later");
            if (std::stoul(request.query.at("offset")) != content.size()) co_return problem_response(409, "gap");
            part_sizes.push_back(request.body.size());
            content += request.body;
        }
        HttpResponse response;
        response.status = request.method == "PUT" ? 204 : 200;
        response.headers.add("Artifact-Stored-Bytes", std::to_string(content.size()));
        response.headers.add("Artifact-Complete", content.size() == expected ? "true" : "false");
        co_return response;
    }
};

struct UploadRig {
    TempFolder folder;
    asio::io_context io{1};
    ArtifactServer artifacts;
    std::unique_ptr<HttpServer> server;
    ArtifactStore store{folder.path("artifacts")};
    WorkStatus status;
    std::string bytes;

    UploadRig() {
        HttpServerOptions options;
        options.most_body_bytes = [](const std::string&, const std::string&) { return std::size_t(2) << 20; };
        server = HttpServer::listen(io.get_executor(), options, [this](HttpRequest r) {
                     return artifacts.serve(std::move(r));
                 }).value();
        for (int i = 0; bytes.size() < (5 << 19); ++i) bytes += std::to_string(i) + " "; // 2.5 MiB
        REQUIRE(write_file_atomically(folder.path("x"), bytes));
        REQUIRE(store.take(7, "logs/a b.txt", folder.path("x")));
    }
    // Runs until the condition holds; false: not within ten seconds.
    bool run_until(std::function<bool()> condition) {
        Uploader uploader(io.get_executor(), parse_url(server->url()).value(), "t", store, status);
        bool held = false;
        asio::co_spawn(io, uploader.run(), asio::detached);
        const auto watch = [](UploadRig& rig, Uploader& up, std::function<bool()> wanted,
                              bool& out) -> asio::awaitable<void> {
            for (const Deadline deadline = Deadline::in(Milliseconds(10'000)); !deadline.passed() && !out;) {
                co_await sleep_until(Deadline::in(Milliseconds(5)));
                out = wanted();
            }
            up.stop();
            co_await sleep_until(Deadline::in(Milliseconds(20)));
            rig.io.stop();
        };
        asio::co_spawn(io, watch(*this, uploader, condition, held), asio::detached);
        io.run();
        io.restart();
        return held;
    }
};

} // namespace

TEST_CASE("an artifact is sent in parts of at most 1 MiB, and its file goes when the controller has it all") {
    UploadRig rig;
    rig.artifacts.expected = rig.bytes.size();
    CHECK(rig.run_until([&] { return rig.store.list().value().empty(); }));
    CHECK(rig.artifacts.content == rig.bytes);
    CHECK(rig.artifacts.part_sizes.size() == 3);
    for (const std::size_t size : rig.artifacts.part_sizes) CHECK(size <= 1 << 20);
}

TEST_CASE("an upload goes on where it was, and over refusals that pass") {
    UploadRig rig;
    rig.artifacts.expected = rig.bytes.size();
    rig.artifacts.content = rig.bytes.substr(0, 1'500'000);
    rig.artifacts.fail_puts = 1;
    CHECK(rig.run_until([&] { return rig.store.list().value().empty(); }));
    CHECK(rig.artifacts.content == rig.bytes);
    CHECK(rig.artifacts.part_sizes.size() == 2);
}

TEST_CASE("an artifact whose offer isn't stored yet waits, and nothing is sent while a run measures") {
    UploadRig rig;
    CHECK_FALSE(rig.run_until([&, n = 0]() mutable { return ++n > 100 && rig.artifacts.puts > 0; }));
    CHECK(rig.store.list().value().size() == 1);
    rig.artifacts.expected = rig.bytes.size();
    rig.status.change([](WorkStatus::View& view) { view.measuring = true; });
    int looks = 0;
    CHECK(rig.run_until([&] { return ++looks > 50; }));
    CHECK(rig.artifacts.puts == 0);
}

TEST_CASE("an artifact that the controller refuses for good does not keep the others") {
    UploadRig rig;
    rig.artifacts.expected = rig.bytes.size();
    REQUIRE(write_file_atomically(rig.folder.path("y"), "y"));
    REQUIRE(rig.store.take(7, "a/refused", rig.folder.path("y"))); // listed first
    CHECK(rig.run_until([&] { return rig.store.list().value().size() == 1; }));
    CHECK(rig.artifacts.content == rig.bytes);
    CHECK(rig.store.list().value().at(0).name == "a/refused"); // kept: nothing is thrown away unasked
}

TEST_CASE("a file that is shorter than its offer does not keep the others") {
    UploadRig rig;
    rig.artifacts.expected = rig.bytes.size() + 1; // the controller waits for a byte that there isn't
    REQUIRE(write_file_atomically(rig.folder.path("y"), "y"));
    REQUIRE(rig.store.take(8, "a/asked for later", rig.folder.path("y")));
    CHECK(rig.run_until([&] { return rig.artifacts.others > 0; }));
    CHECK(rig.store.list().value().size() == 2);
}
