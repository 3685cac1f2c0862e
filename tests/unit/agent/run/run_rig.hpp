// A machine to run on: a real helper with a real guardian and real processes, on this machine's first CPUs; only the
// spool is replaced by a list in memory, since the run sees no more of it than its interface.
#pragma once

#include "agent/helper/start.hpp"
#include "agent/run/block_worker.hpp"
#include "common/base/hash.hpp"
#include "common/process/run_command.hpp"
#include "common/protocol/sample_frame.hpp"
#include "common/topology/topology.hpp"
#include "tests/support/doctest.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace perfrig::testing {

class MemorySink final : public EventSink {
  public:
    Result<void> append_event(std::string_view payload) override {
        auto event = protocol::decode_run_event(payload);
        REQUIRE(event); // nothing that the controller would refuse
        const std::lock_guard lock(mutex_);
        if (full_) return fail(ErrorKind::unavailable, "write to the spool", "", "No space left on device");
        events_.push_back(std::move(*event));
        texts_.emplace_back(payload);
        return {};
    }
    Result<Stored> append_samples(std::string_view payload) override {
        auto frame = protocol::decode_samples(payload);
        REQUIRE(frame);
        const std::lock_guard lock(mutex_);
        if (full_) return fail(ErrorKind::unavailable, "write to the spool", "", "No space left on device");
        frames_.push_back(std::move(*frame));
        return Stored::yes;
    }
    Result<void> sync() override { return {}; }
    std::uint64_t last_sequence() const override {
        const std::lock_guard lock(mutex_);
        return events_.size() + frames_.size();
    }
    void be_full(bool full) {
        const std::lock_guard lock(mutex_);
        full_ = full;
    }

    std::vector<protocol::RunEvent> events() const {
        const std::lock_guard lock(mutex_);
        return events_;
    }
    std::vector<protocol::SampleFrame> frames() const {
        const std::lock_guard lock(mutex_);
        return frames_;
    }
    std::string all_text() const {
        const std::lock_guard lock(mutex_);
        std::string all;
        for (const std::string& text : texts_) all += text + "\n";
        return all;
    }
    template <class E> std::vector<E> of(std::int64_t run = 0) const {
        std::vector<E> out;
        for (const protocol::RunEvent& event : events())
            if (const E* body = std::get_if<E>(&event.body); body && (run == 0 || run == event.run))
                out.push_back(*body);
        return out;
    }
    // "preparing warming measuring stopping uploading completed"
    std::string states(std::int64_t run = 0) const {
        std::string out;
        for (const auto& state : of<protocol::StateChanged>(run)) out += (out.empty() ? "" : " ") + state.state;
        return out;
    }
    std::string end_reason(std::int64_t run = 0) const {
        const auto states = of<protocol::StateChanged>(run);
        return states.empty() ? "" : states.back().reason;
    }
    const protocol::Found* finding(const std::string& check) {
        found_ = of<protocol::Found>();
        for (const protocol::Found& one : found_)
            if (one.check_name == check) return &one;
        return nullptr;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<protocol::RunEvent> events_;
    std::vector<std::string> texts_;
    std::vector<protocol::SampleFrame> frames_;
    std::vector<protocol::Found> found_;
    bool full_ = false;
};

struct RunRig {
    std::string folder;
    HelperConfig helper_config;
    Result<HelperClient> helper;
    SystemClock clock;
    MemorySink sink;
    CollectorSet collectors;
    Sampler sampler;
    RunMachine machine;
    WorkStatus status;
    std::string mark = "86" + std::to_string(::getpid()) + std::to_string(std::stoul(random_hex(2), nullptr, 16));

    static std::string make_folder() {
        char name[] = "/tmp/perfrig-run-XXXXXX";
        const std::string path = ::mkdtemp(name);
        ::chmod(path.c_str(), 0755);
        return path;
    }
    static HelperConfig config_in(const std::string& folder, bool use_cgroups) {
        HelperConfig config;
        config.state_directory = folder + "/state";
        config.work_base = folder + "/work";
        config.agent_user = "54321:54321";
        config.workload_user = "nobody";
        config.use_cgroups = use_cgroups;
        return config;
    }
    static HelperConfig changed(HelperConfig config, const std::function<void(HelperConfig&)>& change) {
        if (change) change(config);
        return config;
    }
    explicit RunRig(bool use_cgroups = true, const std::function<void(HelperConfig&)>& change = {})
        : folder(make_folder()), helper_config(changed(config_in(folder, use_cgroups), change)),
          helper(fork_helper(helper_config)), collectors(FileTree(), clock), sampler(collectors, {}),
          machine{FileTree(),
                  clock,
                  *helper,
                  collectors,
                  sampler,
                  sink,
                  ArtifactStore(folder + "/artifacts"),
                  {},
                  folder + "/logs",
                  "test",
                  "/usr/local/bin:/usr/bin:/bin"} {
        REQUIRE(helper);
        const int cpu = read_topology(FileTree()).value().online.ids().front();
        machine.profile.roles = {{"app", {cpu}}, {"load", {cpu}}};
        machine.profile.share = {{"app", "load"}};
    }
    ~RunRig() {
        helper = fail(ErrorKind::internal, "", "", "closed"); // ends whatever is left
        static_cast<void>(run_command({"rm", "-rf", folder}, Deadline::in(Milliseconds(30'000))));
    }

    // A service that prints "ready" and lives, and a tool that prints a figure after `seconds`.
    ResolvedRun run() const {
        ResolvedRun out;
        out.experiment = "test";
        for (const auto& [role, cpus] : machine.profile.roles) out.roles[role] = cpus.text();
        out.services = {service("echo ready; exec sleep " + mark)};
        out.tools = {tool("sleep 0.3; echo speed: 42.5")};
        out.measure_ms = 300;
        return out;
    }
    static ServiceSpec service(const std::string& shell) {
        ServiceSpec out;
        out.name = "server";
        out.role = "app";
        out.command.argv = {"/bin/sh", "-c", shell};
        out.ready = {Readiness::Kind::log, "^ready$", {}, 5'000};
        out.stop_grace_ms = 2'000;
        return out;
    }
    static ToolSpec tool(const std::string& shell) {
        ToolSpec out;
        out.name = "meter";
        out.tool = "command";
        out.role = "load";
        out.options = {
            {"command", shell},
            {"metrics", Json::array({Json{{"name", "speed"}, {"unit", "1/s"}, {"pattern", "speed: ([0-9.]+)"}}})}};
        return out;
    }
    bool nothing_left() const {
        for (const Deadline deadline = Deadline::in(Milliseconds(5'000)); !deadline.passed(); ::usleep(10'000))
            if (!run_command({"pgrep", "-f", "sleep " + mark}, Deadline::in(Milliseconds(5'000))).value().exit.good())
                return true;
        return false;
    }
    // One run as the worker would work it.
    RunOutcome work(const ResolvedRun& run, Interrupt& interrupt, std::int64_t id = 1) {
        Execution execution(machine, 1, {id, 1, to_json(run)}, interrupt, status);
        const RunOutcome outcome = execution.work();
        REQUIRE(execution.record_end(outcome, Deadline::in(Milliseconds(1'000))));
        return outcome;
    }
    RunOutcome work(const ResolvedRun& run, std::int64_t id = 1) {
        Interrupt none;
        return work(run, none, id);
    }
};

} // namespace perfrig::testing
