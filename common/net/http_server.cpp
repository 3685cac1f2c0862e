// HttpServer: the listening side, and which connections live. What happens on one is in http_connection.cpp.
#include "common/net/http_server.hpp"

#include "common/base/log.hpp"
#include "common/net/http_connection.hpp"
#include "common/net/timeout.hpp"
#include "common/net/websocket_state.hpp"

#include <boost/asio/ip/tcp.hpp>

namespace perfrig {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t most_refused_at_once = 64; // connections that are being told 503
constexpr Milliseconds say_so_every{60'000};     // that strangers are closed
constexpr Milliseconds cancelled_end{2'000};     // how long a cancelled handler may take to end

} // namespace

ConnectionHost::ConnectionHost(asio::any_io_executor e, HttpServerOptions o, HttpHandler h, UpgradeHandler u)
    : executor(e), options(std::move(o)), handler(std::move(h)), upgrade(std::move(u)), tasks(std::move(e)) {}

bool ConnectionHost::make_room() {
    OpenConnection* oldest = nullptr;
    for (OpenConnection* one : open) {
        const bool may_go = one->stranger && one->stream && one->doing != OpenConnection::Doing::working;
        if (may_go && (!oldest || one->waited_since < oldest->waited_since)) oldest = one;
    }
    if (!oldest) return false;
    oldest->stream->close(); // its coroutine sees that when it runs next
    open.remove(oldest);
    ++closed_strangers;
    if (say_so_again.passed()) {
        say_so_again = Deadline::in(say_so_every);
        log::warning("all " + std::to_string(options.most_connections) + " places of " + options.address +
                     " are taken: strangers that were waited for longest are closed for newcomers, " +
                     std::to_string(closed_strangers) + " so far");
    }
    return true;
}

void ConnectionHost::ask_all_to_end(Deadline deadline) {
    for (OpenConnection* connection : open) {
        if (connection->websocket)
            tasks.spawn("closing a WebSocket",
                        close_websocket(connection->websocket, "the server is stopping", deadline, 1001));
        else if (connection->stream && connection->doing == OpenConnection::Doing::nothing)
            connection->stream->close();
    }
}

void ConnectionHost::cut_all() {
    for (OpenConnection* connection : open) {
        if (connection->websocket)
            drop_websocket(connection->websocket, "the server is stopping");
        else if (connection->stream)
            connection->stream->close();
    }
}

struct HttpServer::State : ConnectionHost {
    State(asio::any_io_executor e, HttpServerOptions o, HttpHandler h, UpgradeHandler u)
        : ConnectionHost(e, std::move(o), std::move(h), std::move(u)), acceptor(e), accepting(e) {}
    tcp::acceptor acceptor;
    tcp::endpoint bound;
    TaskGroup accepting;

    static asio::awaitable<void> accept(std::shared_ptr<State> self);
    void admit(tcp::socket socket, const std::shared_ptr<State>& self);
};

asio::awaitable<void> HttpServer::State::accept(std::shared_ptr<State> self) {
    while (!self->stopping) {
        boost::system::error_code error;
        tcp::socket socket(self->executor);
        co_await self->acceptor.async_accept(socket, into(error));
        if (!self->acceptor.is_open()) co_return;
        if (error == asio::error::connection_aborted) continue; // gone before we took it
        if (error) {
            log::error("can't accept a connection on " + self->options.address + ": " + error.message());
            co_await sleep_until(Deadline::in(Milliseconds(500))); // out of descriptors, most likely
            continue;
        }
        self->admit(std::move(socket), self);
    }
}

void HttpServer::State::admit(tcp::socket socket, const std::shared_ptr<State>& self) {
    boost::system::error_code ignored; // a peer that is gone already shows at the first read
    socket.set_option(tcp::no_delay(true), ignored);
    boost::beast::tcp_stream stream(std::move(socket));
    if (open.size() >= options.most_connections && !make_room()) {
        if (tasks.size() < options.most_connections + most_refused_at_once)
            tasks.spawn("refusing a connection", refuse_connection(std::move(stream)));
        return;
    }
    tasks.spawn("an HTTP connection", serve_connection(self, std::move(stream)));
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() {
    state_->stopping = true;
    boost::system::error_code ignored; // closing a listening socket has nothing to lose
    state_->acceptor.close(ignored);
    state_->accepting.cancel();
    state_->tasks.cancel();
    state_->cut_all();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::any_io_executor executor, HttpServerOptions options,
                                                       HttpHandler handler, UpgradeHandler upgrade) {
    const std::string where = options.address + ":" + std::to_string(options.port);
    const std::string tried = "listen on";
    boost::system::error_code error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) return fail(ErrorKind::bad_input, tried, where, "that is not an IP address", "write 127.0.0.1 or ::1");
    auto state = std::make_shared<State>(executor, std::move(options), std::move(handler), std::move(upgrade));
    const tcp::endpoint wanted(address, state->options.port);
    state->acceptor.open(wanted.protocol(), error);
    if (!error) state->acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) state->acceptor.bind(wanted, error);
    if (!error) state->acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) state->bound = state->acceptor.local_endpoint(error);
    if (error)
        return fail(ErrorKind::unavailable, tried, where, error.message(),
                    error == asio::error::address_in_use ? "stop what listens there, or take another port" : "");
    state->accepting.spawn("accepting connections", State::accept(state));
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

std::uint16_t HttpServer::port() const { return state_->bound.port(); }
std::string HttpServer::address() const { return address_text(state_->bound.address()); }
std::size_t HttpServer::connections() const { return state_->open.size(); }
std::string HttpServer::url() const {
    const std::string host = address();
    return "http://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port());
}

asio::awaitable<Result<void>> HttpServer::stop(Deadline deadline) {
    const auto state = state_;
    state->stopping = true;
    boost::system::error_code ignored; // closing a listening socket has nothing to lose
    state->acceptor.close(ignored);
    state->accepting.cancel();
    state->ask_all_to_end(deadline);
    if (co_await state->tasks.wait(deadline)) co_return Result<void>();
    state->tasks.cancel();
    state->cut_all();
    if (co_await state->tasks.wait(Deadline::in(cancelled_end))) co_return Result<void>();
    co_return fail(ErrorKind::timed_out, "stop the HTTP server on", state->options.address,
                   std::to_string(state->tasks.size()) + " connections would not end");
}

} // namespace perfrig
