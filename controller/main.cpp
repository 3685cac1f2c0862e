// perfrig-controller: builds the object graph, serves until it is told to stop, and takes everything down in order.
#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/base/log.hpp"
#include "controller/api/config.hpp"
#include "controller/api/metrics.hpp"
#include "controller/api/router.hpp"
#include "controller/api/token_cache.hpp"
#include "controller/db/migrate.hpp"
#include "controller/db/tokens.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sys/stat.h>
#include <thread>

#ifndef PERFRIG_VERSION
#define PERFRIG_VERSION "0.1.0"
#endif

namespace perfrig {
namespace {

namespace asio = boost::asio;

constexpr Milliseconds stop_within{8'000};
constexpr std::size_t most_queued_jobs = 2'000;

// Exit codes: 0 stopped as told, 2 bad configuration, 3 something it needs is not there.
constexpr int exit_bad_input = 2, exit_unavailable = 3;

Result<std::string> admin_token(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
        if ((status.st_mode & 077) != 0) log::warning("others may read the admin token: chmod 600 " + path);
        PERFRIG_TRY(auto text, read_file(path));
        text.erase(text.find_last_not_of(" \t\r\n") + 1);
        if (text.size() < 16 || text.size() > 512)
            return fail(ErrorKind::bad_input, "read the admin token", path, "it has not 16 to 512 characters",
                        "remove the file: a token is made");
        return text;
    }
    auto token = random_hex(32);
    PERFRIG_CHECK(write_file_atomically(path, token + "\n", 0600));
    log::info("made the admin token " + path);
    return token;
}

Result<void> prepare(db::Connection& c, const api::Config& config) {
    PERFRIG_TRY(const auto applied, db::migrate(c));
    for (const int number : applied) log::info("applied migration " + std::to_string(number));
    if (config.admin_token_file.empty()) {
        PERFRIG_TRY(const bool any, db::tokens::any_of_kind(c, model::TokenKind::user));
        if (!any) log::warning("there is no user token: nobody can use the API (give --admin-token-file)");
        return {};
    }
    PERFRIG_TRY(const auto token, admin_token(config.admin_token_file));
    return db::tokens::create(c, sha256_hex(token), model::TokenKind::user, "admin token file");
}

// Waits for a database that is not there yet, but not for one that will never do. A wrong password and an unknown
// database are waited for, too: under systemd both may start together with whatever makes the database. Each new reason
// is told once; at the end of the wait the last one is, and systemd starts the controller again.
Result<void> prepare_database(const api::Config& config) {
    db::ConnectionOptions options;
    options.target = config.database;
    const auto deadline = Deadline::in(config.database_wait);
    for (std::string told;;) {
        auto connection = db::Connection::open(options);
        if (connection) return prepare(**connection, config);
        if (connection.error().kind == ErrorKind::bad_input || deadline.passed()) return std::move(connection).error();
        if (auto why = connection.error().text(); why != told) {
            log::warning("waiting for the database: " + why);
            told = std::move(why);
        }
        std::this_thread::sleep_for(Milliseconds{250});
    }
}

HttpServerOptions server_options(const api::Config& config) {
    HttpServerOptions options;
    options.address = config.listen.host;
    options.port = config.listen.port;
    options.most_body_bytes = api::Router::most_body_bytes;
    options.websocket.write_queue_bytes = 64 << 20; // prepare_block of a large block
    return options;
}

class Controller {
  public:
    explicit Controller(const api::Config& config)
        : config_(config), pool_(pool_options(config)), api_pool_(threads(config) / 2, most_queued_jobs),
          agent_pool_(threads(config) - threads(config) / 2, most_queued_jobs), changed_(io_.get_executor()),
          scheduler_(io_.get_executor(), pool_, agent_pool_, registry_, changed_, lease_times(config)),
          finisher_(io_.get_executor(), pool_, agent_pool_,
                    [this] {
                        scheduler_.nudge();
                        changed_.notify_all();
                    }),
          agents_{io_.get_executor(), pool_, agent_pool_, registry_, scheduler_, finisher_, changed_, counts_},
          tokens_(pool_, api_pool_),
          services_{pool_, api_pool_, agents_, changed_, metrics_, tokens_, PERFRIG_VERSION, stopping_},
          router_(services_), tasks_(io_.get_executor()) {}

    int run() {
        asio::signal_set signals(io_, SIGTERM, SIGINT);
        signals.async_wait([&](const boost::system::error_code& error, int signal) {
            if (!error) asio::co_spawn(io_, stop(signal), asio::detached);
        });
        auto listening = listen();
        if (!listening) {
            log::error(listening.error().text());
            return exit_unavailable;
        }
        tasks_.spawn("the scheduler", scheduler_.run());
        tasks_.spawn("the finisher", finisher_.run());
        io_.run();
        return 0;
    }

  private:
    static std::size_t threads(const api::Config& config) { return static_cast<std::size_t>(config.pool_size); }
    static db::PoolOptions pool_options(const api::Config& config) {
        db::PoolOptions options;
        options.connection.target = config.database;
        options.size = threads(config);
        return options;
    }
    static queue::LeaseTimes lease_times(const api::Config& config) {
        queue::LeaseTimes times;
        times.lease = config.lease;
        times.heartbeat = std::min(times.heartbeat, config.lease / 3);
        return times;
    }

    Result<void> listen() {
        auto handle = [this](HttpRequest request) { return router_.handle(std::move(request)); };
        auto upgrade = [this](HttpRequest request) { return router_.upgrade(std::move(request)); };
        PERFRIG_TRY(server_, HttpServer::listen(io_.get_executor(), server_options(config_), handle, upgrade));
        log::info("listening on " + server_->url());
        return {};
    }

    asio::awaitable<void> stop(int signal) {
        log::info("stopping: " + std::string(signal == SIGTERM ? "SIGTERM" : "SIGINT"));
        stopping_ = true;
        const auto deadline = Deadline::in(stop_within);
        scheduler_.stop();
        finisher_.stop();
        changed_.notify_all(); // long polls answer now
        const auto stopped = co_await server_->stop(deadline);
        const bool ended = co_await tasks_.wait(deadline);
        if (!stopped || !ended) {
            // Something waits for the database. Nothing is lost: all that counts is there, or with the agents.
            log::warning(!stopped ? stopped.error().text() : "the scheduler does not end in time");
            std::_Exit(0);
        }
        log::info("stopped");
        io_.stop();
    }

    // The order matters: what is declared later uses, and is destroyed before, what is declared earlier.
    api::Config config_;
    bool stopping_ = false;
    asio::io_context io_{1};
    db::Pool pool_;
    BlockingPool api_pool_, agent_pool_; // as many threads as connections, so that no job waits for one
    AsyncEvent changed_;
    agents::Registry registry_;
    agents::IngestCounts counts_;
    queue::Scheduler scheduler_;
    agents::Finisher finisher_;
    agents::SessionServices agents_;
    api::Metrics metrics_;
    api::TokenCache tokens_;
    api::Services services_;
    api::Router router_;
    std::unique_ptr<HttpServer> server_;
    TaskGroup tasks_;
};

int run(const std::vector<std::string>& arguments) {
    api::ConfigSources sources;
    sources.arguments = arguments;
    sources.environment = [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
    };
    sources.read_file = [](const std::string& path) { return read_file(path, 1 << 20); };
    const auto invocation = api::load_config(sources);
    if (!invocation) {
        std::cerr << "perfrig-controller: " << invocation.error().text() << "\n";
        return exit_bad_input;
    }
    using Action = api::Invocation::Action;
    if (invocation->action == Action::version) {
        std::cout << "perfrig-controller " PERFRIG_VERSION "\n";
        return 0;
    }
    if (invocation->action != Action::run) {
        std::cout << invocation->output;
        return 0;
    }
    log::start("perfrig-controller", invocation->config.log_level);
    if (const auto ready = prepare_database(invocation->config); !ready) {
        log::error(ready.error().text());
        return ready.error().kind == ErrorKind::bad_input ? exit_bad_input : exit_unavailable;
    }
    return Controller(invocation->config).run();
}

} // namespace
} // namespace perfrig

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return perfrig::run({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        std::cerr << "perfrig-controller: " << e.what() << "\n";
        return perfrig::exit_unavailable;
    }
}
