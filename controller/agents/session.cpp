#include "controller/agents/session.hpp"

#include "common/base/hash.hpp"
#include "common/base/log.hpp"
#include "common/net/backoff.hpp"
#include "controller/agents/link_commands.hpp"
#include "controller/db/samples.hpp"
#include "controller/ingest/ingest.hpp"
#include "controller/queue/hello.hpp"

#include <random>

namespace perfrig::agents {

namespace asio = boost::asio;

namespace {

using Steady = std::chrono::steady_clock;

constexpr Milliseconds hello_within{15'000};
constexpr Milliseconds write_within{30'000};
constexpr Milliseconds silence{60'000};         // of an agent that sends no heartbeat
constexpr std::size_t most_waiting_batches = 4; // of at most 1 MiB each
constexpr Milliseconds store_within{60'000};    // one try
constexpr Milliseconds patience{300'000};       // with a database that is gone, before the link is given up

class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(WebSocket socket, model::Id machine, std::string name, SessionServices& services)
        : socket_(std::move(socket)), services_(services), handle_(std::make_shared<AgentHandle>(services.executor)),
          batch_came_(services.executor), batch_left_(services.executor), beat_came_(services.executor) {
        handle_->machine = machine;
        handle_->name = std::move(name);
        handle_->session = random_hex(8);
    }

    asio::awaitable<void> run() {
        ++services_.counts.sessions;
        auto begun = co_await begin();
        if (!begun) {
            log::warning("the agent of " + handle_->name + " is refused: " + begun.error().text());
            co_await refuse(begun.error());
            co_return;
        }
        handle_->cut = [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->end("another session took over");
        };
        services_.registry.add(handle_);
        services_.scheduler.nudge();
        services_.changed.notify_all();
        TaskGroup tasks(services_.executor);
        tasks.spawn("the writer for " + handle_->name, write_all());
        tasks.spawn("the lease of " + handle_->name, keep_lease());
        tasks.spawn("the storer for " + handle_->name, store_all());
        co_await read_all();
        end("the link is closed");
        services_.registry.remove(handle_);
        // What is under way in the database ends by its own deadlines; the session's memory must outlive it.
        while (!co_await tasks.wait(Deadline::in(Milliseconds{60'000})))
            log::warning("the session of " + handle_->name + " does not end");
        services_.changed.notify_all();
        log::info("the agent of " + handle_->name + " is gone: " + why_ended_);
    }

  private:
    void end(std::string why) {
        if (ended_) return;
        ended_ = true;
        why_ended_ = std::move(why);
        socket_.drop();
        handle_->more.notify_all();
        batch_came_.notify_all();
        batch_left_.notify_all();
        beat_came_.notify_all();
    }

    asio::awaitable<void> refuse(Error error) {
        protocol::FromController refusal = protocol::Refusal{error.text(), true};
        auto said = co_await socket_.write(false, protocol::encode(refusal), Deadline::in(Milliseconds{2'000}));
        if (said) co_await socket_.close("refused", Deadline::in(Milliseconds{2'000}), 1008);
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
        auto job = [&pool = services_.pool, times = services_.scheduler.times(), hello = *hello,
                    machine = handle_->machine] {
            return pool.run_in_transaction(
                [&](db::Connection& c) { return queue::take_hello(c, machine, hello, times); });
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
            if (message->binary)
                co_await queue_batch(std::move(message->data));
            else
                co_await take_text(std::move(message->data));
        }
    }

    asio::awaitable<void> queue_batch(std::string frame) {
        while (!ended_ && batches_.size() >= most_waiting_batches)
            co_await batch_left_.wait(Deadline::in(Milliseconds{5'000}));
        if (ended_) co_return;
        batches_.push_back(std::move(frame));
        batch_came_.notify_all();
    }

    asio::awaitable<void> take_text(std::string text) {
        const std::int64_t received_ns = SystemClock().utc_ns();
        auto message = protocol::decode_from_agent(text);
        if (!message) {
            say(protocol::Refusal{message.error().text(), true});
            log::warning("the agent of " + handle_->name + " says what is not understood: " + message.error().text());
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
            services_.scheduler.nudge();
            co_return;
        }
        if (const auto* released = std::get_if<protocol::BlockReleased>(&*message)) given_back_ = released->token;
        if (const auto* refused = std::get_if<protocol::BlockRefused>(&*message)) given_back_ = refused->token;
        BlockWord word{std::move(*message)};
        const auto fenced = co_await in_database(word);
        if (!fenced) {
            end("its word could not be stored: " + fenced.error().text());
            co_return;
        }
        refuse_fenced(*fenced);
        services_.scheduler.nudge();
        services_.changed.notify_all();
    }

    // Leases are renewed beside the reader, so that a slow database keeps no heartbeat from its answer. Only the newest
    // heartbeat counts; one that can't be stored is made up for by the next.
    asio::awaitable<void> keep_lease() {
        const auto self = shared_from_this();
        while (!ended_) {
            if (!beat_) {
                co_await beat_came_.wait(Deadline::in(Milliseconds{5'000}));
                continue;
            }
            const std::int64_t token = beat_->token;
            HeartbeatTaken taken{*std::exchange(beat_, std::nullopt)};
            const auto fenced = co_await in_database(taken);
            if (!fenced)
                log::debug("a heartbeat of " + handle_->name + " is not stored: " + fenced.error().text());
            else if (token != given_back_)
                refuse_fenced(*fenced);
        }
    }

    // Returns what was fenced off, if anything.
    template <class Command> asio::awaitable<Result<std::string>> in_database(Command command) {
        auto job = [&pool = services_.pool, times = services_.scheduler.times(), machine = handle_->machine,
                    command = std::move(command)]() -> Result<std::string> {
            PERFRIG_TRY(auto applied,
                        pool.run_in_transaction([&](db::Connection& c) { return command.apply(c, machine, times); }));
            return std::move(applied.fenced);
        };
        co_return co_await services_.blocking.run(job);
    }

    void refuse_fenced(const std::string& why) {
        if (why.empty()) return;
        ++services_.counts.fenced_heartbeats;
        log::warning("the agent of " + handle_->name + " " + why);
        say(protocol::Refusal{why, true});
    }

    asio::awaitable<void> store_all() {
        const auto self = shared_from_this();
        while (!ended_) {
            if (batches_.empty()) {
                co_await batch_came_.wait(Deadline::in(Milliseconds{5'000}));
                continue;
            }
            co_await store(batches_.front());
            batches_.pop_front();
            batch_left_.notify_all();
        }
    }

    asio::awaitable<void> store(std::string frame) {
        auto batch = protocol::decode_batch(frame);
        if (!batch) {
            ++services_.counts.failed_batches;
            end("its records are not understood: " + batch.error().text());
            co_return;
        }
        const auto records = std::make_shared<const protocol::RecordBatch>(std::move(*batch));
        const auto give_up = Deadline::in(patience);
        Backoff backoff(Milliseconds{100}, Milliseconds{5'000});
        const auto started = Steady::now();
        while (!ended_) {
            auto job = [&pool = services_.pool, machine = handle_->machine, records] {
                return pool.run_in_transaction(Deadline::in(store_within), [&](db::Connection& c) {
                    return ingest::store_batch(c, machine, *records);
                });
            };
            auto stored = co_await services_.blocking.run(job);
            if (stored) {
                take(*stored, frame.size(), std::chrono::duration<double>(Steady::now() - started).count());
                co_return;
            }
            ++services_.counts.failed_batches;
            const auto kind = stored.error().kind;
            const bool passes = kind == ErrorKind::unavailable || kind == ErrorKind::timed_out;
            if (!passes || give_up.passed()) {
                // A gap, or what only a new hello with its cursors can put right.
                log::warning("records of " + handle_->name + " can't be stored: " + stored.error().text());
                end("its records could not be stored: " + stored.error().text());
                co_return;
            }
            co_await batch_came_.wait(Deadline::in(backoff.next(random_())));
        }
    }

    void take(const ingest::Stored& stored, std::size_t bytes, double seconds) {
        auto& counts = services_.counts;
        ++counts.batches;
        counts.bytes += static_cast<std::int64_t>(bytes);
        counts.stored += static_cast<std::int64_t>(stored.stored);
        counts.skipped += static_cast<std::int64_t>(stored.skipped);
        counts.rejected += static_cast<std::int64_t>(stored.rejected);
        counts.add_latency(seconds);
        say(protocol::Ack{stored.cursor});
        for (const auto run : stored.to_finish) services_.finisher.add(run);
        if (!stored.to_finish.empty() || !stored.interrupted.empty()) services_.scheduler.nudge();
        if (!stored.changed.empty()) services_.changed.notify_all();
    }

    WebSocket socket_;
    SessionServices& services_;
    std::shared_ptr<AgentHandle> handle_;
    std::deque<std::string> batches_;
    AsyncEvent batch_came_, batch_left_, beat_came_;
    std::optional<protocol::Heartbeat> beat_; // not stored yet
    std::int64_t given_back_ = 0;             // token of the last block that the agent gave back
    std::mt19937_64 random_{std::random_device{}()};
    bool ended_ = false;
    std::string why_ended_;
};

} // namespace

asio::awaitable<void> run_session(WebSocket socket, model::Id machine, std::string machine_name,
                                  SessionServices& services) {
    auto session = std::make_shared<Session>(std::move(socket), machine, std::move(machine_name), services);
    co_await session->run();
}

} // namespace perfrig::agents
