// The link against a stand-in for the controller: a real WebSocket server in this process that says what each test
// wants. The real controller is on the other end in tests/integration.
#include "agent/session/link.hpp"
#include "tests/unit/agent/session/spool_rig.hpp"

#include "common/net/http_server.hpp"
#include "common/net/timeout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <sys/socket.h>

using namespace perfrig;
using namespace perfrig::testing;
namespace asio = boost::asio;

namespace {

Deadline soon() { return Deadline::in(Milliseconds(10'000)); }

// Keeps what agents send; answers hello with a welcome, and acknowledges while `acknowledge` holds.
struct StandIn {
    asio::io_context& io;
    AsyncEvent changed{io.get_executor()};
    std::unique_ptr<HttpServer> server;
    int refuse_with = 0; // an HTTP status instead of the upgrade
    bool acknowledge = true;
    std::vector<protocol::Cursor> cursors;
    std::int64_t keep_block = 0;
    std::function<void()> before_welcome;
    std::optional<protocol::Refusal> refusal; // instead of the welcome
    std::vector<protocol::Hello> hellos;
    std::vector<std::string> tokens;
    std::map<std::int64_t, std::map<std::uint64_t, int>> records; // epoch -> sequence -> how often it came
    std::size_t batches = 0, most_open_batches = 0, open_batches = 0, dials = 0;
    std::vector<protocol::Heartbeat> beats;
    std::vector<protocol::FromAgent> words;
    std::shared_ptr<WebSocket> socket; // the newest
    std::uint64_t last_seq = 0;

    explicit StandIn(asio::io_context& context) : io(context) { listen(0); }
    void listen(std::uint16_t port) {
        HttpServerOptions options;
        options.port = port;
        options.websocket.most_message_bytes = 8 << 20;
        auto listening = HttpServer::listen(
            io.get_executor(), options,
            [](HttpRequest) -> asio::awaitable<HttpResponse> { co_return text_response(404, "none"); },
            [this](HttpRequest request) -> asio::awaitable<UpgradeAnswer> {
                ++dials;
                changed.notify_all();
                tokens.push_back(request.bearer_token() ? *request.bearer_token() : "");
                if (refuse_with != 0) co_return UpgradeAnswer(problem_response(refuse_with, "no"));
                WebSocketSession session = [this](WebSocket s) { return serve(std::move(s)); };
                co_return UpgradeAnswer(std::move(session));
            });
        REQUIRE(listening);
        server = std::move(*listening);
    }
    asio::awaitable<void> say(std::shared_ptr<WebSocket> to, protocol::FromController message) {
        std::string text = protocol::encode(message);
        (void)co_await to->write(false, std::move(text), soon());
    }
    asio::awaitable<void> serve(WebSocket accepted) {
        auto own = std::make_shared<WebSocket>(std::move(accepted));
        socket = own;
        open_batches = 0;
        while (true) {
            auto message = co_await own->read(soon());
            if (!message) co_return;
            if (message->binary) {
                const auto batch = protocol::decode_batch(message->data);
                REQUIRE(batch);
                ++batches;
                most_open_batches = std::max(most_open_batches, ++open_batches);
                for (const auto& record : batch->records) ++records[batch->epoch][record.seq];
                last_seq = batch->records.back().seq;
                if (acknowledge) {
                    --open_batches;
                    protocol::FromController ack = protocol::Ack{{batch->epoch, 0, last_seq}};
                    co_await say(own, std::move(ack));
                }
            } else {
                auto decoded = protocol::decode_from_agent(message->data);
                REQUIRE(decoded);
                if (const auto* hello = std::get_if<protocol::Hello>(&*decoded)) {
                    hellos.push_back(*hello);
                    if (before_welcome) before_welcome();
                    if (refusal) {
                        protocol::FromController no = *refusal;
                        co_await say(own, std::move(no));
                        co_await own->close("refused", soon(), 1008);
                        co_return;
                    }
                    protocol::Welcome welcome;
                    welcome.cursors = cursors;
                    welcome.heartbeat_every_ms = 50;
                    welcome.keep_block = keep_block;
                    welcome.scrape_token_hashes = {"abc"};
                    protocol::FromController answer = std::move(welcome);
                    co_await say(own, std::move(answer));
                } else if (const auto* beat = std::get_if<protocol::Heartbeat>(&*decoded)) {
                    beats.push_back(*beat);
                    // A controller whose clock is an hour ahead.
                    const std::int64_t now = SystemClock().utc_ns() + 3'600'000'000'000;
                    protocol::FromController reply = protocol::HeartbeatReply{beat->t1_utc_ns, now, now};
                    co_await say(own, std::move(reply));
                } else {
                    words.push_back(std::move(*decoded));
                }
            }
            changed.notify_all();
        }
    }
};

// The agent's side: a real spool and a worker that is not started (it takes orders and works none).
struct LinkRig {
    TempFolder folder;
    asio::io_context io{1};
    StandIn controller{io};
    SystemClock clock;
    int sockets[2] = {-1, -1};
    std::unique_ptr<Spool> spool;
    HelperClient helper;
    CollectorSet collectors{FileTree(), clock};
    Sampler sampler{collectors, {}};
    WorkStatus status;
    RunMachine machine;
    std::unique_ptr<BlockWorker> worker;
    std::unique_ptr<Link> link;

    static UniqueFd one_end(int (&ends)[2]) {
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
        return UniqueFd(ends[0]);
    }
    explicit LinkRig(SpoolLimits limits = {})
        : spool(Spool::open(folder.path("spool"), 4, limits).value()), helper(one_end(sockets), -1, -1),
          machine{FileTree(),
                  clock,
                  helper,
                  collectors,
                  sampler,
                  *spool,
                  ArtifactStore(folder.path("artifacts")),
                  {},
                  folder.path("logs"),
                  "",
                  ""},
          worker(BlockWorker::open(machine, folder.path("block.json"), status).value()) {}
    ~LinkRig() { ::close(sockets[1]); }

    LinkOptions options() {
        LinkOptions out;
        out.controller = parse_url(controller.server->url()).value();
        out.token = "secret-token";
        out.least_wait = Milliseconds(20);
        out.most_wait = Milliseconds(100);
        out.refused_wait = Milliseconds(200);
        return out;
    }
    void make_link(LinkOptions with) {
        link = std::make_unique<Link>(io.get_executor(), with, *spool, *worker, status, [] {
            protocol::Hello hello;
            hello.machine = "m";
            return hello;
        });
    }
    void append(int count, std::size_t bytes = 10) {
        for (int i = 0; i < count; ++i) REQUIRE(spool->append_event(event_text(1, std::string(bytes, 'x'))));
    }
    // Runs the test's coroutine beside the link; both end.
    void run(std::function<asio::awaitable<void>(LinkRig&)> test) {
        if (!link) make_link(options());
        bool ended = false;
        asio::co_spawn(io, link->run(), asio::detached);
        const auto whole = [](LinkRig& rig, std::function<asio::awaitable<void>(LinkRig&)> body,
                              bool& done) -> asio::awaitable<void> {
            co_await body(rig);
            done = true;
            rig.link->stop();
            if (rig.controller.server) (void)co_await rig.controller.server->stop(Deadline::in(Milliseconds(2'000)));
            rig.io.stop();
        };
        asio::co_spawn(io, whole(*this, test, ended), [](std::exception_ptr e) {
            if (e) std::rethrow_exception(e);
        });
        io.run_for(std::chrono::seconds(30));
        CHECK(ended);
    }
    asio::awaitable<bool> until(std::function<bool()> condition) {
        for (const Deadline deadline = soon(); !condition(); co_await sleep_until(Deadline::in(Milliseconds(5))))
            if (deadline.passed()) co_return false;
        co_return true;
    }
};

} // namespace

TEST_CASE("the link says hello with its token, epoch and spool, and sends what lies there oldest first") {
    TempFolder old_folder;
    LinkRig rig;
    rig.append(3);
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.records[4].size() == 3; }));
        CHECK(r.controller.tokens.at(0) == "secret-token");
        CHECK(r.controller.hellos.at(0).machine == "m");
        CHECK(r.controller.hellos.at(0).epoch == 4);
        CHECK(r.controller.hellos.at(0).spool.at(0).last_seq == 3);
        r.append(2); // and what comes later
        CHECK(co_await r.until([&] { return r.controller.records[4].size() == 5; }));
        const bool drained = co_await r.link->drain(soon());
        CHECK(drained);
        CHECK(r.spool->figures().records == 0);
        CHECK(r.link->figures().scrape_token_hashes == std::vector<std::string>{"abc"});
    });
}

TEST_CASE("what was not acknowledged is sent again after a cut, what was is not") {
    LinkRig rig;
    rig.append(5);
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.records[4].size() == 5; }));
        CHECK(co_await r.until([&] { return r.spool->figures().records == 0; }));
        r.controller.acknowledge = false;
        r.append(3);
        CHECK(co_await r.until([&] { return r.controller.records[4].size() == 8; }));
        r.controller.acknowledge = true;
        r.controller.cursors = {{4, 0, 5}};
        r.controller.socket->drop();
        CHECK(co_await r.until([&] { return r.controller.records[4][8] == 2; }));
        CHECK(r.controller.records[4][5] == 1);
        CHECK(r.controller.records[4][6] == 2);
        CHECK(co_await r.until([&] { return r.spool->figures().records == 0; }));
    });
}

TEST_CASE("a controller that stored more than it acknowledged is not sent that again") {
    LinkRig rig;
    rig.append(10);
    rig.controller.cursors = {{4, 0, 7}};
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.records[4].size() == 3; }));
        CHECK(r.controller.records[4].begin()->first == 8);
    });
}

TEST_CASE("no more batches are under way than agreed when acknowledgements stay out, and heartbeats go on") {
    LinkRig rig;
    rig.controller.acknowledge = false;
    rig.append(200, 60'000); // 12 MB: a dozen batches
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.batches == 4; }));
        const std::size_t beats = r.controller.beats.size();
        CHECK(co_await r.until([&] { return r.controller.beats.size() > beats + 3; }));
        CHECK(r.controller.batches == 4);
        CHECK(r.controller.most_open_batches == 4);
        protocol::FromController ack = protocol::Ack{{4, 0, r.controller.last_seq}};
        co_await r.controller.say(r.controller.socket, std::move(ack));
        CHECK(co_await r.until([&] { return r.controller.batches == 8; }));
    });
}

TEST_CASE("heartbeats measure the offset to the controller's clock") {
    LinkRig rig;
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until(
            [&] { return !r.controller.beats.empty() && r.controller.beats.back().offset_ns.has_value(); }));
        const auto& beat = r.controller.beats.back();
        CHECK(std::abs(*beat.offset_ns + 3'600'000'000'000) < 2'000'000'000); // ours less the controller's
        CHECK(*beat.offset_error_ns >= 0);
        CHECK(beat.doing == "idle");
    });
}

TEST_CASE("a controller that is away is dialled until it is back, and nothing is lost meanwhile") {
    LinkRig rig;
    rig.make_link(rig.options());
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.link->figures().connected; }));
        const std::uint16_t port = r.controller.server->port();
        (void)co_await r.controller.server->stop(Deadline::in(Milliseconds(1'000)));
        r.controller.server.reset();
        CHECK(co_await r.until([&] { return !r.link->figures().connected; }));
        r.append(4);
        co_await sleep_until(Deadline::in(Milliseconds(100)));
        r.controller.listen(port);
        CHECK(co_await r.until([&] { return r.controller.records[4].size() == 4; }));
        CHECK(r.link->figures().connections == 2);
    });
}

TEST_CASE("a refused token is told, and asked again slowly") {
    LinkRig rig;
    rig.controller.refuse_with = 401;
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.dials >= 1; }));
        co_await sleep_until(Deadline::in(Milliseconds(100)));
        CHECK(r.controller.dials == 1); // not every 20 ms
        r.controller.refuse_with = 0;
        CHECK(co_await r.until([&] { return r.link->figures().connected; }));
    });
}

TEST_CASE("after_measure keeps records back while a run measures; live does not") {
    for (const NetworkPolicy policy : {NetworkPolicy::after_measure, NetworkPolicy::live}) {
        LinkRig rig;
        LinkOptions options = rig.options();
        options.during_measure = policy;
        rig.make_link(options);
        rig.append(2);
        rig.status.change([&](WorkStatus::View& view) {
            view.run = 1;
            view.measuring = true;
            view.measuring_since_seq = 2;
        });
        rig.run([policy](LinkRig& r) -> asio::awaitable<void> {
            CHECK(co_await r.until([&] { return r.controller.records[4].size() == 2; })); // what came before goes out
            r.append(3);
            const std::size_t beats = r.controller.beats.size();
            CHECK(co_await r.until([&] { return r.controller.beats.size() > beats + 5; }));
            CHECK(r.controller.records[4].size() == (policy == NetworkPolicy::live ? 5 : 2));
            r.status.change([](WorkStatus::View& view) { view.measuring = false; });
            CHECK(co_await r.until([&] { return r.controller.records[4].size() == 5; }));
        });
    }
}

TEST_CASE("a controller that talks nonsense loses the link, and gets another hello") {
    LinkRig rig;
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.hellos.size() == 1; }));
        std::string nonsense = R"({"type":"explode"})";
        (void)co_await r.controller.socket->write(false, std::move(nonsense), soon());
        CHECK(co_await r.until([&] { return r.controller.hellos.size() == 2; }));
    });
}

TEST_CASE("a block that is worked is said again after each hello that keeps it") {
    LinkRig rig;
    BlockState state;
    state.prepare({3, 7, {{11, 1, {}}}});
    state.run_opened(11);
    state.run_ended(11, "completed");
    REQUIRE(save_block_state(rig.folder.path("block.json"), state));
    rig.worker = BlockWorker::open(rig.machine, rig.folder.path("block.json"), rig.status).value();
    rig.controller.keep_block = 3;
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.words.size() == 1; }));
        CHECK(std::get<protocol::BlockWorked>(r.controller.words.at(0)).token == 7);
        CHECK(r.controller.hellos.at(0).open_block == 3);
        CHECK(r.controller.hellos.at(0).highest_token == 7);
        CHECK(co_await r.until([&] { return !r.controller.beats.empty(); }));
        CHECK(r.controller.beats.at(0).token == 7); // renews its lease
    });
}

TEST_CASE("what the worker says between a hello and its welcome is not lost") {
    LinkRig rig;
    rig.controller.before_welcome = [&rig] { rig.link->say(protocol::BlockReleased{3, 7}); };
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.words.size() == 1; }));
        CHECK(std::get<protocol::BlockReleased>(r.controller.words.at(0)).token == 7);
    });
}

TEST_CASE("a controller that knows more of this start than was ever written is not linked to, and nothing is dropped") {
    LinkRig rig;
    rig.append(3);
    rig.controller.cursors = {{4, protocol::main_stream, 1'000}}; // of an agent whose state directory was lost
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.hellos.size() == 2; }));
        CHECK(r.link->figures().last_error.find("the state directory was lost") != std::string::npos);
        CHECK(r.spool->figures().records == 3);
    });
}

TEST_CASE("a refusal that lasts is asked about slowly, one that may pass soon, and both heal by themselves") {
    for (const bool lasting : {true, false}) {
        CAPTURE(lasting);
        LinkRig rig;
        LinkOptions options = rig.options();
        options.refused_wait = Milliseconds(1'500);
        rig.make_link(options);
        rig.controller.refusal = protocol::Refusal{"no common version", true, lasting};
        rig.run([lasting](LinkRig& r) -> asio::awaitable<void> {
            const auto began = std::chrono::steady_clock::now();
            CHECK(co_await r.until([&] { return r.controller.hellos.size() == 3; }));
            const auto took = std::chrono::steady_clock::now() - began;
            CHECK((took >= std::chrono::seconds(3)) == lasting);
            CHECK(r.link->figures().last_error.find("no common version") != std::string::npos);
            r.controller.refusal.reset();
            CHECK(co_await r.until([&] { return r.link->figures().connected; }));
            CHECK(r.link->figures().last_error.empty());
        });
    }
}

TEST_CASE("the hello names this start as its spool does") {
    LinkRig rig;
    rig.append(1);
    rig.run([](LinkRig& r) -> asio::awaitable<void> {
        CHECK(co_await r.until([&] { return r.controller.hellos.size() == 1; }));
        const auto& hello = r.controller.hellos.at(0);
        CHECK(hello.start_id == r.spool->start_id());
        CHECK(hello.spool.at(0).start_id == hello.start_id);
    });
}
