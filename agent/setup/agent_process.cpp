#include "agent/setup/agent_process.hpp"

#include "agent/host/inventory.hpp"
#include "agent/run/block_worker.hpp"
#include "agent/session/agent_metrics.hpp"
#include "agent/session/uploader.hpp"
#include "agent/setup/machine_parts.hpp"
#include "common/base/log.hpp"
#include "common/metrics/exposition.hpp"
#include "common/net/http_server.hpp"
#include "common/net/timeout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <thread>

namespace perfrig {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds drain_time{3'000}; // for the last records at the end

class AgentProcess {
  public:
    AgentProcess(const AgentConfig& config, std::string version, MachineParts& parts, BlockWorker& worker,
                 WorkStatus& status, Url controller, std::string token)
        : config_(config), version_(std::move(version)), parts_(parts), worker_(worker), status_(status),
          link_(io_.get_executor(), {controller, token, config.during_measure}, *parts.spool, worker, status,
                [this] { return hello(); }),
          uploader_(io_.get_executor(), controller, token, parts.machine.artifacts, status), tasks_(io_.get_executor()),
          scrape_hashes_(load_scrape_hashes(parts.state.file("scrape.json"))) {}

    Result<int> run() {
        PERFRIG_TRY(const HostPort listen, parse_host_port(config_.metrics_listen));
        HttpServerOptions options;
        options.address = listen.host == "localhost" ? "127.0.0.1" : listen.host;
        options.port = listen.port;
        options.most_connections = 16;
        PERFRIG_TRY(metrics_, HttpServer::listen(io_.get_executor(), options,
                                                 [this](HttpRequest request) { return serve(std::move(request)); }));
        log::info("metrics at " + metrics_->url() + "/metrics");
        asio::signal_set signals(io_, SIGTERM, SIGINT);
        signals.async_wait([this](boost::system::error_code error, int number) {
            if (!error) end(0, "signal " + std::to_string(number));
        });
        PERFRIG_CHECK(worker_.start([this](protocol::FromAgent message) { link_.say(std::move(message)); },
                                    [this](std::string why) { asio::post(io_, [this, why] { end(3, why); }); }));
        tasks_.spawn("the link", link_.run());
        tasks_.spawn("the uploader", uploader_.run());
        tasks_.spawn("the watch over the helper", watch());
        io_.run();
        return exit_code_;
    }

  private:
    protocol::Hello hello() {
        protocol::Hello message;
        message.machine = config_.name;
        message.agent_version = version_;
        const Inventory now =
            read_inventory(parts_.machine.tree, parts_.machine.cgroup_summary, parts_.machine.thread_source);
        message.boot_id = now.boot_id;
        message.environment = {{"facts", now.facts}, {"raw", now.raw}, {"fingerprint", now.fingerprint}};
        message.profile = to_json(config_.profile);
        for (const auto& [key, value] : config_.labels) message.labels[key] = value;
        message.metrics_url = metrics_->url() + "/metrics";
        return message;
    }

    asio::awaitable<HttpResponse> serve(HttpRequest request) {
        if (request.path != "/metrics") co_return problem_response(404, "there is only /metrics here");
        if (request.method != "GET" && request.method != "HEAD") {
            HttpResponse refused = problem_response(405, "only GET and HEAD are served");
            refused.headers.add("Allow", "GET, HEAD");
            co_return refused;
        }
        if (!may_scrape(request, scrape_hashes_)) {
            HttpResponse refused = problem_response(401, "a scrape token of the controller is needed");
            refused.headers.add("WWW-Authenticate", "Bearer");
            co_return refused;
        }
        HttpResponse response =
            text_response(200,
                          agent_exposition(parts_.collectors.snapshot(), status_.view(), parts_.spool->figures(),
                                           link_.figures(), read_own_figures(), version_),
                          exposition_content_type);
        response.known_peer = true;
        co_return response;
    }

    // Once a second: is the helper there, did a guardian go, has the controller named other scrape tokens?
    asio::awaitable<void> watch() {
        while (!ending_) {
            if (const auto alive = parts_.helper.check_alive(); !alive) end(3, alive.error().text());
            for (const RunLost& lost : parts_.helper.take_lost())
                log::error("the guardian of run " + lost.run.text() + " was lost: " + lost.why);
            const auto& named = link_.figures().scrape_token_hashes;
            if (link_.figures().connections > 0 && named != scrape_hashes_) {
                scrape_hashes_ = named;
                if (const auto saved = save_scrape_hashes(parts_.state.file("scrape.json"), named); !saved)
                    log::warning(saved.error().text());
            }
            co_await sleep_until(Deadline::in(Milliseconds(1'000)));
        }
    }

    void end(int exit_code, const std::string& why) {
        if (ending_) return;
        ending_ = true;
        exit_code_ = exit_code;
        if (exit_code == 0)
            log::info("ends: " + why);
        else
            log::error("ends: " + why);
        // The worker ends its run on its own thread; the link goes on meanwhile and takes the last records along.
        ender_ = std::thread([this] {
            worker_.stop("the agent was stopped");
            asio::post(io_, [this] { begin_finish(); });
        });
    }

    void begin_finish() {
        ender_.join(); // it has said its last word
        asio::co_spawn(io_, finish(), asio::detached);
    }

    asio::awaitable<void> finish() {
        const bool drained = co_await link_.drain(Deadline::in(drain_time));
        if (!drained) log::info("records are left in the spool; they are sent after the next start");
        link_.stop();
        uploader_.stop();
        co_await metrics_->stop(Deadline::in(Milliseconds(1'000)));
        tasks_.cancel();
        co_await tasks_.wait(Deadline::in(Milliseconds(2'000)));
        io_.stop();
    }

    const AgentConfig& config_;
    const std::string version_;
    MachineParts& parts_;
    BlockWorker& worker_;
    WorkStatus& status_;
    asio::io_context io_{1};
    Link link_;
    Uploader uploader_;
    TaskGroup tasks_;
    std::unique_ptr<HttpServer> metrics_;
    std::vector<std::string> scrape_hashes_;
    std::thread ender_;
    bool ending_ = false;
    int exit_code_ = 0;
};

} // namespace

int run_agent(const AgentConfig& config, const std::string& version) {
    const auto stop_with = [](const Error& error) {
        log::error(error.text());
        return error.kind == ErrorKind::bad_input || error.kind == ErrorKind::forbidden ||
                       error.kind == ErrorKind::not_found
                   ? 2
                   : 3;
    };
    if (config.controller.empty())
        return stop_with(fail(ErrorKind::bad_input, "start the agent", "", "no controller is named",
                              "set 'controller' in the configuration, or --controller URL"));
    const auto url = controller_url(config.controller);
    if (!url) return stop_with(url.error());
    const auto token = agent_token(config); // as whoever starts us: its file may be root's
    if (!token) return stop_with(token.error());
    auto parts = MachineParts::make(config);
    if (!parts) return stop_with(parts.error());
    if (config.profile.roles.empty())
        log::warning("the profile has no roles: every run will be refused; add profile.roles to the configuration");
    WorkStatus status;
    auto worker = BlockWorker::open((*parts)->machine, (*parts)->state.file("block.json"), status);
    if (!worker) return stop_with(worker.error());
    log::info("perfrig-agent " + version + " as machine " + config.name + ", start " +
              std::to_string((*parts)->spool->epoch()) + ", " + (*parts)->machine.cgroup_summary);
    AgentProcess process(config, version, **parts, **worker, status, *url, *token);
    const auto ended = process.run();
    return ended ? *ended : stop_with(ended.error());
}

} // namespace perfrig
