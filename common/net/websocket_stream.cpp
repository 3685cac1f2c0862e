// The only unit that instantiates Beast's WebSocket stream.
#include "common/net/task_group.hpp"
#include "common/net/websocket_state.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <deque>

namespace perfrig {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

namespace {

constexpr std::size_t keep_buffer_bytes = 256 << 10; // a read buffer that one big message blew up is let go again
constexpr std::size_t read_step_bytes = 64 << 10;
const Deadline never = Deadline::at(std::chrono::steady_clock::time_point::max());

struct Outgoing {
    enum class Progress { queued, sending, sent };
    bool binary = false;
    std::string data;
    Progress progress = Progress::queued;
};

} // namespace

struct WebSocket::State : std::enable_shared_from_this<WebSocket::State> {
    State(beast::tcp_stream tcp, WebSocketOptions o)
        : stream(std::move(tcp)), options(o), inbox_changed(stream.get_executor()),
          inbox_drained(stream.get_executor()), outbox_changed(stream.get_executor()),
          frame_done(stream.get_executor()), at_end(stream.get_executor()),
          last_heard(std::chrono::steady_clock::now()) {
        boost::system::error_code ignored; // a peer that is gone already shows at the first read
        const auto peer_end = beast::get_lowest_layer(stream).socket().remote_endpoint(ignored);
        peer = ignored ? "" : address_text(peer_end.address());
        beast::get_lowest_layer(stream).expires_never(); // the deadlines from here on are ours
        websocket::stream_base::timeout timeout{};
        timeout.handshake_timeout = options.handshake;
        timeout.idle_timeout = websocket::stream_base::none(); // keep_alive() does it: see there
        timeout.keep_alive_pings = false;
        stream.set_option(timeout);
        stream.read_message_max(options.most_message_bytes);
        stream.write_buffer_bytes(std::max<std::size_t>(options.write_buffer_bytes, 4 << 10));
        stream.auto_fragment(false);
    }

    websocket::stream<beast::tcp_stream> stream;
    WebSocketOptions options;
    std::string peer;
    std::deque<WebSocketMessage> inbox;
    std::size_t inbox_bytes = 0;
    std::deque<std::shared_ptr<Outgoing>> outbox; // the front one may be under way
    std::size_t outbox_bytes = 0;
    AsyncEvent inbox_changed, inbox_drained, outbox_changed, frame_done, at_end;
    std::chrono::steady_clock::time_point last_heard; // any byte from the peer
    bool paused = false;                              // the pump waits for the reader: silence is our own doing
    bool pinging = false;                             // a ping is being written
    bool closing = false;                             // no new writes
    bool ended = false;
    std::string why; // it ended

    void start();
    void end(std::string reason);
    asio::awaitable<void> read_pump();
    asio::awaitable<void> write_pump();
    asio::awaitable<void> keep_alive();
    std::string why_read_failed(const boost::system::error_code& error) const;
    Error closed_error(const char* tried) const {
        return fail(ErrorKind::unavailable, tried, peer, why.empty() ? "it is being closed" : why);
    }
};

void WebSocket::State::start() {
    stream.control_callback(
        [this](websocket::frame_type, beast::string_view) { last_heard = std::chrono::steady_clock::now(); });
    const auto run = [self = shared_from_this()](asio::awaitable<void> (State::*pump)()) {
        asio::co_spawn(self->stream.get_executor(), (self.get()->*pump)(), [self](std::exception_ptr thrown) {
            if (!thrown) return;
            try {
                std::rethrow_exception(thrown);
            } catch (const std::exception& e) {
                self->end(e.what());
            }
        });
    };
    run(&State::read_pump);
    run(&State::write_pump);
    run(&State::keep_alive);
}

void WebSocket::State::end(std::string reason) {
    if (ended) return;
    ended = closing = true;
    if (why.empty()) why = std::move(reason); // a close on our side has said it already
    beast::get_lowest_layer(stream).close();
    for (AsyncEvent* event : {&inbox_changed, &inbox_drained, &outbox_changed, &frame_done, &at_end})
        event->notify_all();
}

std::string WebSocket::State::why_read_failed(const boost::system::error_code& error) const {
    if (error == websocket::error::closed) {
        const auto& reason = stream.reason();
        const std::string text(reason.reason.data(), reason.reason.size());
        return "closed with code " + std::to_string(reason.code) + (text.empty() ? "" : ": " + text);
    }
    if (error == asio::error::eof) return "the peer is gone without a closing handshake";
    if (error == websocket::error::message_too_big)
        return "the peer sent a message of more than " + std::to_string(options.most_message_bytes) + " bytes";
    return error.message();
}

asio::awaitable<void> WebSocket::State::read_pump() {
    const auto self = shared_from_this();
    beast::flat_buffer buffer;
    while (!ended) {
        do {
            boost::system::error_code error;
            co_await stream.async_read_some(buffer, read_step_bytes, into(error));
            if (error) {
                end(why_read_failed(error));
                co_return;
            }
            last_heard = std::chrono::steady_clock::now();
        } while (!stream.is_message_done());
        WebSocketMessage message;
        message.binary = stream.got_binary();
        message.data.assign(static_cast<const char*>(buffer.data().data()), buffer.size());
        buffer.clear();
        if (buffer.capacity() > keep_buffer_bytes) buffer.shrink_to_fit();
        inbox_bytes += message.data.size();
        inbox.push_back(std::move(message));
        inbox_changed.notify_all();
        while (inbox_bytes > options.read_ahead_bytes && !ended) {
            paused = true;
            co_await inbox_drained.wait(never);
        }
        if (paused) last_heard = std::chrono::steady_clock::now();
        paused = false;
    }
}

asio::awaitable<void> WebSocket::State::write_pump() {
    const auto self = shared_from_this();
    for (;;) {
        while (outbox.empty() && !ended) co_await outbox_changed.wait(never);
        if (ended) co_return;
        const auto item = outbox.front();
        item->progress = Outgoing::Progress::sending;
        stream.binary(item->binary);
        boost::system::error_code error;
        co_await stream.async_write(asio::buffer(item->data), into(error));
        if (error) {
            // The reader knows better why (a close frame); it gets its say first where it has one.
            end("writing failed: " + error.message());
            co_return;
        }
        item->progress = Outgoing::Progress::sent;
        outbox_bytes -= item->data.size();
        outbox.pop_front();
        frame_done.notify_all();
    }
}

// Beast's own idle timeout would also end a connection whose reader is only slow (the database is away for a minute,
// say), since it counts what is read. This one doesn't judge while the pump is paused.
asio::awaitable<void> WebSocket::State::keep_alive() {
    const auto self = shared_from_this();
    const auto tick = std::max(options.idle / 4, Milliseconds(1));
    for (unsigned n = 1; !ended; ++n) {
        co_await at_end.wait(Deadline::at(std::chrono::steady_clock::now() + tick));
        if (ended) co_return;
        if (!paused && std::chrono::steady_clock::now() - last_heard > options.idle) {
            end("the peer has sent nothing for " + std::to_string(options.idle.count()) + " ms");
            co_return;
        }
        if (n % 2 == 0 && options.keep_alive_pings && !pinging && !closing) {
            pinging = true;
            stream.async_ping({}, [self](boost::system::error_code) { self->pinging = false; });
        }
    }
}

WebSocket::WebSocket(std::shared_ptr<State> state) : state_(std::move(state)) { state_->start(); }
WebSocket::WebSocket(WebSocket&&) noexcept = default;
WebSocket& WebSocket::operator=(WebSocket&& other) noexcept {
    if (this != &other) {
        if (state_) state_->end("dropped on this side");
        state_ = std::move(other.state_);
    }
    return *this;
}
WebSocket::~WebSocket() {
    if (state_) state_->end("dropped on this side");
}

asio::awaitable<Result<WebSocketMessage>> WebSocket::read(Deadline deadline) {
    const auto state = state_;
    while (state->inbox.empty()) {
        if (state->ended) co_return state->closed_error("read from the WebSocket of");
        if (!co_await state->inbox_changed.wait(deadline))
            co_return fail(ErrorKind::timed_out, "read from the WebSocket of", state->peer, "no message in time");
    }
    WebSocketMessage message = std::move(state->inbox.front());
    state->inbox.pop_front();
    state->inbox_bytes -= message.data.size();
    state->inbox_drained.notify_all();
    co_return std::move(message);
}

asio::awaitable<Result<void>> WebSocket::write(bool binary, std::string data, Deadline deadline) {
    const auto state = state_;
    constexpr auto tried = "write to the WebSocket of";
    if (state->closing) co_return state->closed_error(tried);
    if (!state->outbox.empty() && state->outbox_bytes + data.size() > state->options.write_queue_bytes)
        co_return fail(ErrorKind::unavailable, tried, state->peer,
                       std::to_string(state->outbox_bytes) + " bytes are queued already: the peer reads too slowly");
    const auto item = std::make_shared<Outgoing>();
    item->binary = binary;
    item->data = std::move(data);
    struct Queued { // takes a frame that has not begun back, should the writer give up or be cancelled
        State& state;
        std::shared_ptr<Outgoing> item;
        Queued(State& s, std::shared_ptr<Outgoing> i) : state(s), item(std::move(i)) {
            state.outbox.push_back(item);
            state.outbox_bytes += item->data.size();
            state.outbox_changed.notify_all();
        }
        Queued(const Queued&) = delete;
        ~Queued() {
            if (item->progress == Outgoing::Progress::queued && std::erase(state.outbox, item) > 0)
                state.outbox_bytes -= item->data.size();
        }
    };
    const Queued queued(*state, item);
    while (item->progress != Outgoing::Progress::sent) {
        if (state->ended) co_return state->closed_error(tried);
        if (co_await state->frame_done.wait(deadline) || item->progress == Outgoing::Progress::sent) continue;
        if (item->progress == Outgoing::Progress::sending) state->end("the peer did not take a frame in time");
        co_return fail(ErrorKind::timed_out, tried, state->peer, "the peer did not take it in time");
    }
    co_return Result<void>();
}

asio::awaitable<void> WebSocket::close(std::string reason, Deadline deadline, std::uint16_t code) {
    return close_websocket(state_, std::move(reason), deadline, code);
}
void WebSocket::drop() { state_->end("dropped on this side"); }
bool WebSocket::open() const { return !state_->closing; }
std::string WebSocket::peer_address() const { return state_->peer; }
std::size_t WebSocket::queued_bytes() const { return state_->outbox_bytes; }

asio::awaitable<void> close_websocket(std::shared_ptr<WebSocket::State> state, std::string reason, Deadline deadline,
                                      std::uint16_t code) {
    if (state->closing) co_return;
    state->closing = true;
    state->why = "closed on this side" + (reason.empty() ? "" : ": " + reason);
    bool in_time = true;
    while (!state->outbox.empty() && !state->ended && in_time) in_time = co_await state->frame_done.wait(deadline);
    if (state->ended) co_return;
    if (in_time) {
        reason.resize(std::min<std::size_t>(reason.size(), 123));
        const websocket::close_reason say(static_cast<websocket::close_code>(code), reason);
        state->stream.async_close(say, [state](boost::system::error_code) { state->end(state->why); });
        while (!state->ended && in_time) in_time = co_await state->at_end.wait(deadline);
    }
    state->end(state->why);
}

void drop_websocket(const std::shared_ptr<WebSocket::State>& state, std::string why) { state->end(std::move(why)); }

asio::awaitable<Result<std::shared_ptr<WebSocket::State>>>
accept_websocket(beast::tcp_stream tcp, http::request<http::string_body> request, WebSocketOptions options) {
    auto state = std::make_shared<WebSocket::State>(std::move(tcp), options);
    boost::system::error_code error;
    co_await state->stream.async_accept(request, into(error));
    if (error) co_return net_error(error, "accept the WebSocket of", state->peer);
    co_return state;
}

asio::awaitable<Result<std::shared_ptr<WebSocket::State>>> upgrade_websocket(beast::tcp_stream tcp, Url url,
                                                                             HttpHeaders headers,
                                                                             WebSocketOptions options,
                                                                             Deadline deadline, int* refused_status) {
    options.handshake = std::min(options.handshake, std::max(deadline.left(), Milliseconds(1)));
    auto state = std::make_shared<WebSocket::State>(std::move(tcp), options);
    state->stream.set_option(websocket::stream_base::decorator([headers](websocket::request_type& request) {
        request.set(http::field::user_agent, "perfrig");
        for (const auto& [name, value] : headers.fields()) request.set(name, value);
    }));
    websocket::response_type response;
    boost::system::error_code error;
    co_await state->stream.async_handshake(response, url.host_header(), url.target, into(error));
    if (error == websocket::error::upgrade_declined) {
        const int status = static_cast<int>(response.result_int());
        if (refused_status) *refused_status = status;
        const std::string body = response.body().substr(0, 500);
        co_return fail(kind_of_status(status), "open the WebSocket", url.text(),
                       "the server answered " + std::to_string(status) + " " + std::string(reason_phrase(status)) +
                           (body.empty() ? "" : ": " + body),
                       status == 401 || status == 403 ? "check the token" : "");
    }
    if (error) co_return net_error(error, "open the WebSocket", url.text());
    co_return state;
}

} // namespace perfrig
