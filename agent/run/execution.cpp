#include "agent/run/execution.hpp"

#include "agent/host/inventory.hpp"
#include "agent/run/fill_in.hpp"
#include "agent/run/free_ports.hpp"
#include "agent/run/run_checks.hpp"
#include "common/base/log.hpp"

#include <filesystem>
#include <thread>

namespace perfrig {

namespace {
constexpr Milliseconds helper_time{30'000};         // for one request to the helper
constexpr Milliseconds margin{60'000};              // on top of what a state is expected to take
constexpr std::int64_t clock_step_ns = 500'000'000; // wall clock against monotonic clock, between phases
} // namespace

Execution::Execution(const RunMachine& machine, std::int64_t block, const protocol::AssignedRun& assigned,
                     Interrupt& interrupt, WorkStatus& status)
    : machine_(machine), block_(block), assigned_(assigned), interrupt_(interrupt), status_(status) {}

CpuList Execution::memory_of(const std::string& role) const {
    const auto found = machine_.profile.memory.find(role);
    return found == machine_.profile.memory.end() ? CpuList() : found->second;
}

void Execution::enter(const std::string& state, Milliseconds deadline) {
    status_.change([&](WorkStatus::View& view) {
        view.state = state;
        view.until.reset();
        view.measuring = false;
    });
    recorder_->state(state, "", deadline);
    if (state == "measuring")
        status_.change([&](WorkStatus::View& view) {
            view.measuring = true;
            view.measuring_since_seq = machine_.sink.last_sequence();
        });
}

void Execution::begin_phase(const std::string& name, std::optional<Milliseconds> expected) {
    end_phase();
    const ClockAnchor anchor = machine_.clock.anchor();
    recorder_->event(protocol::PhaseStarted{++phase_, name, anchor.monotonic_ns, anchor});
    phase_open_ = true;
    status_.change(
        [&](WorkStatus::View& view) { view.until = expected ? std::optional(Deadline::in(*expected)) : std::nullopt; });
    if (!first_anchor_) first_anchor_ = anchor;
    const std::int64_t step =
        (anchor.utc_ns - anchor.monotonic_ns) - (first_anchor_->utc_ns - first_anchor_->monotonic_ns);
    if (step > clock_step_ns || step < -clock_step_ns) {
        recorder_->finding("clock", "warning", "clock",
                           "the wall clock was set during the run: it moved by " +
                               std::to_string(static_cast<double>(step) / 1e9) +
                               " s against the monotonic clock before " + name,
                           Json{{"step_seconds", static_cast<double>(step) / 1e9}});
        first_anchor_ = anchor; // say each step once
    }
}

void Execution::end_phase() {
    if (!phase_open_) return;
    phase_open_ = false;
    recorder_->event(protocol::PhaseEnded{phase_, machine_.clock.monotonic_ns()});
    recorder_->sync(); // samples too: at the end of a phase
}

void Execution::take_environment(const char* when) {
    const Inventory now = read_inventory(machine_.tree, machine_.cgroup_summary, machine_.thread_source);
    recorder_->event(protocol::EnvironmentTaken{when, now.boot_id, now.fingerprint, now.facts, now.raw});
}

RunStep<void> Execution::check() {
    auto resolved = resolved_run_from_json(assigned_.resolved);
    // The recorder comes first: a refusal is recorded too, and secrets must be known to it.
    recorder_ = std::make_unique<RunRecorder>(machine_.sink, machine_.clock, block_, assigned_.run,
                                              resolved ? resolved->secrets : std::vector<std::string>(), interrupt_);
    if (!resolved) return refused(resolved.error().text());
    run_ = std::move(*resolved);
    status_.change([&](WorkStatus::View& view) { view.experiment = run_.experiment; });
    PERFRIG_TRY(CheckedRun checked, check_run(machine_, run_));
    roles_ = std::move(checked.roles);
    protocol::RolesGranted granted;
    for (const auto& [role, cpus] : roles_) granted.roles[role] = cpus.text();
    recorder_->event(std::move(granted));
    for (const PlacementFault& fault : checked.findings)
        recorder_->finding("shared_cpus", "warning", fault.role, fault.message,
                           Json{{"roles", {fault.role, fault.other_role}}, {"cpus", fault.cpus.text()}});
    return {};
}

RunStop Execution::of_helper(const Error& error) {
    return machine_.helper.check_alive() ? failed(error) : interrupted(error.text());
}

RunStep<void> Execution::prepare() {
    Milliseconds ready_time{0};
    for (const ServiceSpec& service : run_.services) ready_time += Milliseconds(service.ready.within_ms);
    enter("preparing",
          (run_.build.empty() ? Milliseconds(0) : Milliseconds(run_.build_within_ms)) + ready_time + margin);
    auto guard = machine_.helper.begin_run({assigned_.run, assigned_.attempt}, Deadline::in(helper_time),
                                           machine_.profile.limits.processes);
    if (!guard) return of_helper(guard.error());
    pump_ = std::make_unique<OutputPump>(machine_.monitor_cpus());
    processes_ =
        std::make_unique<RunProcesses>(machine_, std::move(*guard), *recorder_, interrupt_, *pump_, run_.secrets);
    const auto ports = find_free_ports(machine_.tree, run_.ports);
    if (!ports) return failed(ports.error());
    run_ = fill_in(std::move(run_), fill_ins(processes_->directory(), *ports));
    for (const ToolSpec& spec : run_.tools) {
        auto tool = make_tool(spec.tool, spec.options);
        if (!tool) return refused("tool '" + spec.name + "': " + tool.error().text());
        tools_.push_back(std::move(*tool));
    }
    for (const auto& [path, content] : run_.files) {
        const int mode = content.starts_with("#!") ? 0755 : 0644;
        const auto written = machine_.helper.write_file({assigned_.run, assigned_.attempt}, path, mode, content,
                                                        Deadline::in(helper_time));
        if (!written) return of_helper(written.error());
    }
    take_environment("before");
    PERFRIG_CHECK(build());
    PERFRIG_CHECK(check_nobody_answers());
    if (!run_.services.empty()) begin_phase("start", ready_time);
    for (const ServiceSpec& service : run_.services) PERFRIG_CHECK(start_service(service));
    end_phase();
    return {};
}

RunStep<void> Execution::build() {
    if (run_.build.empty()) return {};
    begin_phase("build", Milliseconds(run_.build_within_ms));
    std::string role = run_.build_role;
    if (role.empty()) role = run_.services.empty() ? run_.tools.front().role : run_.services.front().role;
    const Deadline deadline = Deadline::in(Milliseconds(run_.build_within_ms));
    int number = 0;
    for (const Command& command : run_.build) {
        StartOrder order;
        order.name = "build-" + std::to_string(++number);
        order.log_name = "build/" + std::to_string(number);
        order.role = role;
        order.phase = "build";
        order.sampled = false;
        order.argv = command.argv;
        order.environment = command.environment;
        order.directory = command.directory;
        order.cpus = roles_[role];
        order.memory_nodes = memory_of(role);
        PERFRIG_TRY(RunProcess * process, processes_->start(std::move(order)));
        PERFRIG_TRY(const bool ended, processes_->wait(deadline, [&] { return process->exited.has_value(); }));
        if (!ended)
            return failed("build command " + std::to_string(number) + " did not end within " +
                          std::to_string(run_.build_within_ms / 1000) + " s" + process->last_words());
        if (!process->exited->status.good())
            return failed("build command " + std::to_string(number) + " failed (" + process->exited->status.text() +
                          ")" + process->last_words());
    }
    end_phase();
    return {};
}

RunOutcome Execution::work() {
    status_.set({assigned_.run, assigned_.attempt, "", "preparing", false, 0, std::nullopt});
    std::filesystem::remove_all(machine_.log_folder);
    std::filesystem::create_directories(machine_.log_folder);
    RunStep<void> step = check();
    if (step) step = prepare();
    if (step) step = warm();
    if (step) step = measure();
    RunStop stop = step ? RunStop{"completed", ""} : std::move(step).error();
    if (processes_) end_everything(&stop);
    if (recorder_->refused_frames() > 0)
        recorder_->finding("spool", "void", "samples",
                           "the spool was full: " + std::to_string(recorder_->refused_frames()) +
                               " readings of all series were not kept",
                           Json{{"refused_readings", recorder_->refused_frames()}});
    if (recorder_->live_left_out() > 0)
        recorder_->finding("live_series", "warning", "series",
                           std::to_string(recorder_->live_left_out()) +
                               " values of the tools' own series were not kept: of each, 100 a second are (a tool that "
                               "prints so much waits for who reads it; let it print less)",
                           Json{{"left_out", recorder_->live_left_out()}});
    const bool helper_lost = !machine_.helper.check_alive();
    return {stop.state, recorder_->redacted(stop.reason), leftovers_, helper_lost};
}

Result<void> Execution::record_end(const RunOutcome& outcome, Deadline deadline, const std::function<bool()>& give_up) {
    while (true) {
        const auto written = recorder_->end(outcome.state, outcome.reason);
        if (written || deadline.passed() || (give_up && give_up())) return written;
        log::error("the end of run " + std::to_string(assigned_.run) +
                   " can't be recorded yet: " + written.error().text());
        std::this_thread::sleep_for(std::min(deadline.left(), Milliseconds(1'000)));
    }
}

} // namespace perfrig
