#include "controller/agents/session.hpp"

#include "common/base/hash.hpp"
#include "common/base/log.hpp"
#include "common/protocol/fields.hpp"
#include "controller/agents/batch_storer.hpp"
#include "controller/agents/link_commands.hpp"
#include "controller/db/tokens.hpp"
#include "controller/queue/hello.hpp"

namespace perfrig::agents {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds hello_within{15'000};
constexpr Milliseconds write_within{30'000};
constexpr Milliseconds silence{60'000};              // of an agent that sends no heartbeat
constexpr Milliseconds farewell{2'000};              // for each of its parts
constexpr std::size_t most_close_reason_bytes = 123; // RFC 6455, 5.5
constexpr Milliseconds look_again{5'000};            // whether the token stands, where no heartbeat comes
constexpr const char* revoked_words = "its token was revoked: join this machine again, then start its agent anew";

bool is_lasting(ErrorKind kind) {
    return kind == ErrorKind::bad_input || kind == ErrorKind::forbidden || kind == ErrorKind::conflict ||
           kind == ErrorKind::not_found;
}

struct CancelAtEnd {
    TaskGroup& tasks;
    ~CancelAtEnd() { tasks.cancel(); }
};

class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(WebSocket socket, AgentIdentity agent, SessionServices& services)
        : socket_(std::move(socket)), services_(services), handle_(std::make_shared<AgentHandle>(services.executor)),
          tasks_(services.executor), storer_(services, agent.machine, agent.name, storer_answers()),
          beat_came_(services.executor) {
        handle_->machine = agent.machine;
        handle_->name = std::move(agent.name);
        handle_->token_hash = std::move(agent.token_hash);
        handle_->session = random_hex(8);
    }

    asio::awaitable<void> run() {
        ++services_.counts.sessions;
        auto begun = co_await begin();
        if (!begun) {
            log::warning("the agent of " + handle_->name + " is refused: " + begun.error().text());
            co_await part(begun.error().text(), is_lasting(begun.error().kind));
            co_return;
        }
        handle_->cut = [weak = weak_from_this()](const std::string& why) {
            if (const auto self = weak.lock()) self->dismiss(why);
        };
        services_.registry.add(handle_);
        services_.scheduler.nudge();
        services_.changed.notify_all();
        tasks_.spawn("the writer for " + handle_->name, write_all());
        tasks_.spawn("the lease of " + handle_->name, keep_lease());
        tasks_.spawn("the storer for " + handle_->name, store_all());
        const CancelAtEnd cancelled{tasks_}; // where the server is stopped in the middle of this
        co_await read_all();
        end("the link is closed");
        // What is under way in the database ends by its own deadlines; the session's memory must outlive it.
        while (!co_await tasks_.wait(Deadline::in(Milliseconds{60'000})))
            log::warning("the session of " + handle_->name + " does not end");
        services_.changed.notify_all();
        log::info("the agent of " + handle_->name + " is gone: " + why_ended_);
    }

  private:
    // The link is broken.
    void end(std::string why) {
        if (stop(std::move(why))) socket_.drop();
    }

    // The link is good, and goes all the same: from here on nothing that comes on it counts.
    void dismiss(const std::string& why, bool lasting = false) {
        if (stop("dismissed: " + why)) tasks_.spawn("the farewell to " + handle_->name, part(why, lasting));
    }

    bool stop(std::string why) {
        if (std::exchange(ended_, true)) return false;
        why_ended_ = std::move(why);
        handle_->more.notify_all();
        storer_.stop();
        services_.registry.remove(handle_);
        beat_came_.notify_all();
        return true;
    }

    BatchStorer::Answers storer_answers() {
        return {[this](protocol::Ack ack) { say(std::move(ack)); }, [this](const std::string& why) { dismiss(why); }};
    }

    asio::awaitable<void> store_all() {
        const auto self = shared_from_this();
        co_await storer_.run();
    }

    asio::awaitable<void> part(std::string why, bool lasting) {
        const auto self = shared_from_this();
        protocol::FromController refusal = protocol::Refusal{why, true, lasting};
        if (co_await socket_.write(false, protocol::encode(refusal), Deadline::in(farewell)))
            co_await socket_.close(protocol::presentable(why, most_close_reason_bytes), Deadline::in(farewell), 1008);
        socket_.drop();
    }

    asio::awaitable<Result<void>> begin() {
        PERFRIG_CO_TRY(auto message, co_await socket_.read(Deadline::in(hello_within)));
        if (message.binary)
            co_return fail(ErrorKind::bad_input, "begin the link of", handle_->name, "its first message is no hello");
        PERFRIG_CO_TRY(auto first, protocol::decode_from_agent(message.data));
        const auto* hello = std::get_if<protocol::Hello>(&first);
        if (!hello)
            co_return fail(ErrorKind::bad_input, "begin the link of", handle_->name, "its first message is no hello");
        handle_->metrics_url = hello->metrics_url;
        storer_.expect(*hello);
        auto job = [&pool = services_.pool, times = services_.scheduler.times(), hello = *hello, handle = handle_] {
            return pool.run_in_transaction([&](db::Connection& c) -> Result<queue::HelloTaken> {
                // It may have been revoked since it opened the link.
                PERFRIG_TRY(const auto token, db::tokens::find(c, handle->token_hash));
                if (!token) return fail(ErrorKind::forbidden, "begin the link of", handle->name, revoked_words);
                return queue::take_hello(c, handle->machine, hello, times);
            });
        };
        PERFRIG_CO_TRY(auto taken, co_await services_.blocking.run(job));
        log::info(taken.told);
        taken.welcome.session = handle_->session;
        protocol::FromController welcome = std::move(taken.welcome);
        PERFRIG_CO_CHECK(co_await socket_.write(false, protocol::encode(welcome), Deadline::in(write_within)));
        for (auto& next : taken.then) handle_->outbox.push_back(std::move(next));
        co_return Result<void>();
    }

    asio::awaitable<void> write_all() {
        const auto self = shared_from_this();
        while (!ended_) {
            if (handle_->outbox.empty()) {
                co_await handle_->more.wait(Deadline::in(Milliseconds{5'000}));
                continue;
            }
            const auto text = protocol::encode(handle_->outbox.front());
            handle_->outbox.pop_front();
            auto written = co_await socket_.write(false, text, Deadline::in(write_within));
            if (!written) end("it can't be written to: " + written.error().text());
        }
    }

    void say(protocol::FromController message) {
        handle_->outbox.push_back(std::move(message));
        handle_->more.notify_all();
    }

    asio::awaitable<void> read_all() {
        while (!ended_) {
            auto message = co_await socket_.read(Deadline::in(silence));
            if (!message) {
                end(message.error().text());
                co_return;
            }
            if (ended_) co_return; // it came too late
            if (message->binary)
                co_await storer_.add(std::move(message->data));
            else
                co_await take_text(std::move(message->data));
        }
    }

    asio::awaitable<void> take_text(std::string text) {
        const std::int64_t received_ns = SystemClock().utc_ns();
        auto message = protocol::decode_from_agent(text);
        if (!message) {
            dismiss("it says what is not understood: " + message.error().text());
            co_return;
        }
        if (const auto* beat = std::get_if<protocol::Heartbeat>(&*message)) {
            ++services_.counts.heartbeats;
            handle_->doing = beat->doing;
            say(protocol::HeartbeatReply{beat->t1_utc_ns, received_ns, SystemClock().utc_ns()});
            beat_ = *beat;
            beat_came_.notify_all();
            co_return;
        }
        if (const auto* worked = std::get_if<protocol::BlockWorked>(&*message)) {
            handle_->worked_token = worked->token;
            handle_->doing.clear(); // what the last heartbeat said is over
            services_.scheduler.nudge();
            co_return;
        }
        if (const auto* released = std::get_if<protocol::BlockReleased>(&*message)) {
            given_back_ = released->token;
            handle_->doing.clear();
        }
        if (const auto* refused = std::get_if<protocol::BlockRefused>(&*message)) given_back_ = refused->token;
        BlockWord word{std::move(*message)};
        const auto fenced = co_await in_database(word);
        if (!fenced) {
            dismiss("its word could not be stored: " + fenced.error().text());
            co_return;
        }
        refuse_fenced(fenced->fenced);
        services_.scheduler.nudge();
        services_.changed.notify_all();
    }

    // Leases are renewed beside the reader, so that a slow database keeps no heartbeat from its answer. Only the newest
    // heartbeat counts; one that can't be stored is made up for by the next.
    asio::awaitable<void> keep_lease() {
        const auto self = shared_from_this();
        while (!ended_) {
            if (!beat_ && co_await beat_came_.wait(Deadline::in(look_again))) continue;
            if (ended_) co_return;
            const std::int64_t token = beat_ ? beat_->token : 0;
            HeartbeatTaken taken{std::exchange(beat_, std::nullopt), handle_->token_hash};
            const auto applied = co_await in_database(taken);
            if (!applied)
                log::debug("a heartbeat of " + handle_->name + " is not stored: " + applied.error().text());
            else if (applied->revoked)
                dismiss(revoked_words, true);
            else if (token != given_back_)
                refuse_fenced(applied->fenced);
        }
    }

    template <class Command> asio::awaitable<Result<Applied>> in_database(Command command) {
        auto job = [&pool = services_.pool, times = services_.scheduler.times(), machine = handle_->machine,
                    command = std::move(command)] {
            return pool.run_in_transaction([&](db::Connection& c) { return command.apply(c, machine, times); });
        };
        co_return co_await services_.blocking.run(job);
    }

    void refuse_fenced(const std::string& why) {
        if (why.empty()) return;
        ++services_.counts.fenced_heartbeats;
        log::warning("the agent of " + handle_->name + " " + why);
        dismiss(why);
    }

    WebSocket socket_;
    SessionServices& services_;
    std::shared_ptr<AgentHandle> handle_;
    TaskGroup tasks_;
    BatchStorer storer_;
    AsyncEvent beat_came_;
    std::optional<protocol::Heartbeat> beat_; // not stored yet
    std::int64_t given_back_ = 0;             // token of the last block that the agent gave back
    bool ended_ = false;
    std::string why_ended_;
};

} // namespace

asio::awaitable<void> run_session(WebSocket socket, AgentIdentity agent, SessionServices& services) {
    auto session = std::make_shared<Session>(std::move(socket), std::move(agent), services);
    co_await session->run();
}

} // namespace perfrig::agents
