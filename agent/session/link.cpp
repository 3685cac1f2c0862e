#include "agent/session/link.hpp"

#include "common/base/log.hpp"
#include "common/net/timeout.hpp"

#include <boost/asio/post.hpp>
#include <random>

namespace perfrig {

namespace asio = boost::asio;

namespace {
constexpr Milliseconds write_time{30'000};
constexpr Milliseconds close_time{2'000};
constexpr Milliseconds gather_time{20};              // records that come in a burst leave in one batch
constexpr std::size_t most_welcome_bytes = 64 << 20; // a block of thousands of runs
constexpr Milliseconds say_again_after{60'000};      // the same failure of the link, in the log
constexpr std::size_t most_held = 1'000;             // words between a hello and its welcome
constexpr int missed_beats = 5;                      // replies that may be missing before the link is given up

// Asked again as it is, the controller will say the same: an unknown token, no common version, a state directory that
// another agent uses.
bool needs_a_person(ErrorKind kind) {
    return kind == ErrorKind::forbidden || kind == ErrorKind::bad_input || kind == ErrorKind::conflict;
}
} // namespace

struct Link::Session {
    WebSocket socket;
    AsyncEvent ended_event;
    bool ended = false;
    std::string why = "it ended";
    SpoolPosition sent;
    std::deque<SpoolPosition> in_flight; // the last record of each batch
    std::int64_t heartbeat_every_ms = 2'000;
    std::int64_t unanswered_beats = 0;

    Session(WebSocket s, asio::any_io_executor executor) : socket(std::move(s)), ended_event(std::move(executor)) {}
    void end(std::string reason) {
        if (ended) return;
        ended = true;
        why = std::move(reason);
        socket.drop();
        ended_event.notify_all();
    }
};

Link::Link(asio::any_io_executor executor, LinkOptions options, Spool& spool, BlockWorker& worker,
           const WorkStatus& status, HelloMaker make_hello)
    : executor_(executor), options_(std::move(options)), spool_(spool), worker_(worker), status_(status),
      make_hello_(std::move(make_hello)), tasks_(executor), changed_(executor) {
    spool_.on_append([this] { // from any thread; one wake-up for many records
        if (woken_.exchange(true)) return;
        asio::post(executor_, [this] {
            woken_ = false;
            changed_.notify_all();
        });
    });
}

Link::~Link() { spool_.on_append({}); }

void Link::stop() {
    stop_ = true;
    if (session_) session_->end("the agent ends");
    changed_.notify_all();
}

asio::awaitable<void> Link::run() {
    Backoff backoff(options_.least_wait, options_.most_wait);
    std::mt19937_64 random{std::random_device{}()};
    Deadline say_again = Deadline::in(Milliseconds(0));
    while (!stop_) {
        const std::uint64_t before = figures_.connections;
        const auto outcome = co_await dial();
        figures_.connected = false;
        if (stop_) break;
        if (figures_.connections != before) backoff.reset();
        Milliseconds wait = backoff.next(random());
        if (!outcome) {
            const bool said_already = figures_.last_error == outcome.error().text() && !say_again.passed();
            if (!said_already) say_again = Deadline::in(say_again_after);
            figures_.last_error = outcome.error().text();
            const bool lasting = needs_a_person(outcome.error().kind);
            if (lasting) wait = options_.refused_wait;
            if (lasting && !said_already)
                log::error("the controller refuses this agent, which asks again every " +
                           std::to_string(wait.count() / 1'000) + " s: " + figures_.last_error);
            else if (!said_already)
                log::warning("link to the controller: " + figures_.last_error);
        }
        const Deadline until = Deadline::in(wait);
        while (!stop_ && co_await changed_.wait(until)) {
        }
    }
}

asio::awaitable<Result<void>> Link::dial() {
    Url url = options_.controller.with_target("/agent/v1/link");
    url.scheme = url.secure() ? UrlScheme::wss : UrlScheme::ws;
    HttpHeaders headers{{"Authorization", "Bearer " + options_.token}};
    WebSocketOptions socket_options;
    socket_options.most_message_bytes = most_welcome_bytes;
    int status = 0;
    auto dialled =
        co_await connect_websocket(url, std::move(headers), Deadline::in(options_.answer), socket_options, &status);
    if (!dialled && (status == 401 || status == 403)) {
        Error refused = std::move(dialled).error();
        refused.remedy = "enrol this machine again with `perfrig-agent join " + options_.controller.text() +
                         "`, then start the agent anew";
        co_return refused;
    }
    if (!dialled) co_return std::move(dialled).error();
    auto session = std::make_shared<Session>(std::move(*dialled), executor_);
    protocol::Hello hello = make_hello_();
    held_.clear(); // the standing below is newer
    const BlockStanding standing = worker_.standing();
    hello.epoch = spool_.epoch();
    hello.start_id = spool_.start_id();
    hello.open_block = standing.block;
    hello.open_run = standing.open_run;
    hello.highest_token = standing.highest_token;
    hello.spool = spool_.ranges();
    std::string text = protocol::encode(protocol::FromAgent(std::move(hello)));
    PERFRIG_CO_CHECK(co_await session->socket.write(false, std::move(text), Deadline::in(write_time)));
    PERFRIG_CO_TRY(auto first, co_await session->socket.read(Deadline::in(options_.answer)));
    PERFRIG_CO_TRY(auto answer, protocol::decode_from_controller(first.data));
    if (const auto* refusal = std::get_if<protocol::Refusal>(&answer))
        co_return fail(refusal->lasting ? ErrorKind::forbidden : ErrorKind::unavailable, "say hello to", url.text(),
                       refusal->reason);
    const auto* message = std::get_if<protocol::Welcome>(&answer);
    if (first.binary || !message)
        co_return fail(ErrorKind::bad_input, "say hello to", url.text(), "the first answer is no welcome");
    if (message->version != protocol::version)
        co_return fail(ErrorKind::bad_input, "say hello to", url.text(),
                       "it chose version " + std::to_string(message->version) + " of the link, which is unknown here");
    // Numbers of this start that it never gave out: what it spools under them would be taken for known and dropped.
    for (const protocol::Cursor& cursor : message->cursors)
        if (cursor.stream == protocol::main_stream && cursor.epoch == spool_.epoch() &&
            cursor.last_seq > spool_.last_sequence())
            co_return fail(ErrorKind::conflict, "keep the link to", url.text(),
                           "it has record " + std::to_string(cursor.last_seq) + " of this agent's start " +
                               std::to_string(cursor.epoch) + ", which has written only " +
                               std::to_string(spool_.last_sequence()) +
                               ": the state directory was lost, or another agent uses a copy",
                           "write a larger number than " + std::to_string(cursor.epoch) +
                               " into the file 'epoch' of the state directory, and start the agent again");
    welcome(*session, *message);
    session_ = session;
    if (standing.worked && message->keep_block == standing.block)
        say(protocol::BlockWorked{standing.block, standing.token});
    for (protocol::FromAgent& word : held_) say(std::move(word));
    held_.clear();
    tasks_.spawn("the link's reader", read_all(session));
    tasks_.spawn("the link's sender", send_records(session));
    tasks_.spawn("the link's heart", beat(session));
    while (!session->ended) co_await session->ended_event.wait(Deadline::in(Milliseconds(60'000)));
    session_.reset();
    figures_.connected = false;
    changed_.notify_all();
    while (!co_await tasks_.wait(Deadline::in(Milliseconds(60'000)))) {
    }
    co_return fail(ErrorKind::unavailable, "keep the link to", url.text(), session->why);
}

void Link::welcome(Session& session, const protocol::Welcome& message) {
    ++figures_.connections;
    figures_.connected = true;
    figures_.last_error.clear();
    figures_.scrape_token_hashes = message.scrape_token_hashes;
    session.heartbeat_every_ms = message.heartbeat_every_ms;
    for (const protocol::Cursor& cursor : message.cursors)
        if (cursor.stream == protocol::main_stream) {
            const SpoolPosition stored{cursor.epoch, cursor.last_seq};
            acknowledged_ = std::max(acknowledged_, stored);
            spool_.acknowledge(stored);
        }
    log::info("connected to " + options_.controller.text());
    worker_.lease_is(message.keep_block);
}

asio::awaitable<void> Link::read_all(std::shared_ptr<Session> session) {
    while (!session->ended) {
        auto message = co_await session->socket.read(Deadline::in(Milliseconds(60'000)));
        if (!message && message.error().kind == ErrorKind::timed_out) continue; // the heart notices silence
        if (!message) co_return session->end(message.error().text());
        auto decoded = message->binary ? Result<protocol::FromController>(
                                             fail(ErrorKind::bad_input, "read", "the link", "a binary message came"))
                                       : protocol::decode_from_controller(message->data);
        if (!decoded) co_return session->end(decoded.error().text());
        take(*session, std::move(*decoded));
    }
}

void Link::take(Session& session, protocol::FromController message) {
    if (auto* order = std::get_if<protocol::PrepareBlock>(&message)) return worker_.give(std::move(*order));
    if (auto* order = std::get_if<protocol::AssignRun>(&message)) return worker_.give(std::move(*order));
    if (auto* order = std::get_if<protocol::CancelRun>(&message)) return worker_.give(std::move(*order));
    if (auto* order = std::get_if<protocol::EndBlock>(&message)) return worker_.give(std::move(*order));
    if (const auto* ack = std::get_if<protocol::Ack>(&message)) {
        acknowledged_ = {ack->cursor.epoch, ack->cursor.last_seq};
        spool_.acknowledge(acknowledged_);
        while (!session.in_flight.empty() && session.in_flight.front() <= acknowledged_) session.in_flight.pop_front();
        return changed_.notify_all();
    }
    if (const auto* reply = std::get_if<protocol::HeartbeatReply>(&message)) {
        session.unanswered_beats = 0;
        const std::int64_t t4 = SystemClock().utc_ns();
        const std::int64_t round_trip = (t4 - reply->t1_utc_ns) - (reply->t3_utc_ns - reply->t2_utc_ns);
        if (round_trip < 0) return; // a clock was set in between
        offset_ns_ =
            ((reply->t1_utc_ns - reply->t2_utc_ns) + (t4 - reply->t3_utc_ns)) / 2; // ours minus the controller's
        offset_error_ns_ = round_trip / 2;
        figures_.clock_offset_ns = offset_ns_;
        return;
    }
    if (const auto* refusal = std::get_if<protocol::Refusal>(&message)) {
        log::warning("the controller refuses: " + refusal->reason);
        if (refusal->fatal) session.end("the controller ended it: " + refusal->reason);
        return;
    }
    session.end("a second welcome came");
}

bool Link::may_send(const Session& session) const {
    if (session.in_flight.size() >= options_.most_in_flight) return false;
    if (options_.during_measure == NetworkPolicy::live) return true;
    const WorkStatus::View now = status_.view();
    return !now.measuring || session.sent < SpoolPosition{spool_.epoch(), now.measuring_since_seq};
}

asio::awaitable<void> Link::send_records(std::shared_ptr<Session> session) {
    while (!session->ended) {
        if (!may_send(*session)) {
            co_await changed_.wait(Deadline::in(Milliseconds(500))); // the end of measure notifies nobody
            continue;
        }
        auto chunk = spool_.read_after(session->sent, protocol::most_batch_bytes);
        if (!chunk) co_return session->end(chunk.error().text());
        if (!*chunk) {
            if (co_await changed_.wait(Deadline::in(Milliseconds(5'000))))
                co_await sleep_until(Deadline::in(gather_time));
            continue;
        }
        const SpoolPosition last{(*chunk)->epoch, (*chunk)->last_seq};
        std::string frame = protocol::encode_batch_header((*chunk)->epoch) + (*chunk)->records;
        figures_.bytes_sent += frame.size();
        session->sent = last;
        session->in_flight.push_back(last);
        const auto written = co_await session->socket.write(true, std::move(frame), Deadline::in(write_time));
        if (!written) co_return session->end(written.error().text());
        ++figures_.batches_sent;
    }
}

asio::awaitable<void> Link::beat(std::shared_ptr<Session> session) {
    while (!session->ended) {
        if (++session->unanswered_beats > missed_beats)
            co_return session->end("no heartbeat was answered for " + std::to_string(missed_beats) + " times " +
                                   std::to_string(session->heartbeat_every_ms) + " ms");
        const BlockStanding standing = worker_.standing();
        protocol::Heartbeat message;
        message.t1_utc_ns = SystemClock().utc_ns();
        message.monotonic_ns = SystemClock().monotonic_ns();
        message.block = standing.block;
        message.token = standing.block == 0 ? 0 : standing.token;
        message.offset_ns = offset_ns_;
        message.offset_error_ns = offset_error_ns_;
        message.doing = status_.doing();
        co_await write(session, std::move(message));
        const Deadline next = Deadline::in(Milliseconds(session->heartbeat_every_ms));
        while (!session->ended && !next.passed()) co_await session->ended_event.wait(next);
    }
}

asio::awaitable<void> Link::write(std::shared_ptr<Session> session, protocol::FromAgent message) {
    std::string text = protocol::encode(message);
    const auto written = co_await session->socket.write(false, std::move(text), Deadline::in(write_time));
    if (!written) session->end(written.error().text());
}

void Link::say(protocol::FromAgent message) {
    asio::post(executor_, [this, message = std::move(message)]() mutable {
        if (session_ && !session_->ended)
            tasks_.spawn("a word to the controller", write(session_, std::move(message)));
        else if (!session_ && held_.size() < most_held)
            held_.push_back(std::move(message));
    });
}

asio::awaitable<bool> Link::drain(Deadline deadline) {
    const SpoolPosition all{spool_.epoch(), spool_.last_sequence()};
    while (all.seq > 0 && acknowledged_ < all) {
        if (deadline.passed() || !session_) co_return false;
        co_await changed_.wait(deadline);
    }
    co_return true;
}

} // namespace perfrig
