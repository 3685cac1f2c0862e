// Warm-up, pause and measure: tools under load with collectors on, and what is read out of them.
#include "agent/run/execution.hpp"

#include "common/base/file_tree.hpp"

namespace perfrig {

namespace {
constexpr Milliseconds margin{60'000};
constexpr std::size_t most_tool_output = 256 << 20;
// When affinities are read from status after the start of measure: early, since a tool may live for a fraction of a
// second, and memory nodes now and then. Beside this the collectors ask for every thread's CPUs at each tick.
constexpr std::int64_t affinity_looks_ms[] = {0, 50, 250};
constexpr std::int64_t affinity_every_ms = 30'000; // after these

Nanoseconds longest_of(const std::vector<std::unique_ptr<Tool>>& tools, ToolPhase phase, Milliseconds duration) {
    Nanoseconds longest = duration;
    for (const auto& tool : tools)
        if (const auto call = tool->invocation(phase, duration)) longest = std::max(longest, call->at_most);
    return longest;
}

Milliseconds in_ms(Nanoseconds time) { return std::chrono::ceil<Milliseconds>(time); }

// Says when the next look at the affinities is due.
class AffinityLooks {
  public:
    bool due(std::int64_t now_ns) {
        if (begin_ns_ == 0) begin_ns_ = now_ns;
        const std::int64_t since_ms = (now_ns - begin_ns_) / 1'000'000;
        if (since_ms < next_ms_) return false;
        while (next_ms_ <= since_ms)
            next_ms_ =
                ++index_ < std::size(affinity_looks_ms) ? affinity_looks_ms[index_] : next_ms_ + affinity_every_ms;
        return true;
    }

  private:
    std::int64_t begin_ns_ = 0, next_ms_ = 0;
    std::size_t index_ = 0;
};

} // namespace

RunStep<std::vector<RunProcess*>> Execution::run_tools(ToolPhase phase, Milliseconds duration) {
    const bool measuring = phase == ToolPhase::measure;
    const std::string phase_name = measuring ? "measure" : "warm_up";
    std::vector<RunProcess*> started(run_.tools.size(), nullptr);
    std::vector<Deadline> deadlines;
    for (std::size_t i = 0; i < run_.tools.size(); ++i) {
        const ToolSpec& spec = run_.tools[i];
        deadlines.push_back(Deadline::in(Milliseconds(0)));
        if (!measuring && !spec.warms_up) continue;
        const auto call = tools_[i]->invocation(phase, duration);
        if (!call) return refused("tool '" + spec.name + "': " + call.error().text());
        for (const ToolFile& file : call->files) {
            const auto written = machine_.helper.write_file({assigned_.run, assigned_.attempt}, file.name, 0644,
                                                            file.content, Deadline::in(margin));
            if (!written) return of_helper(written.error());
        }
        StartOrder order;
        order.name = spec.name;
        order.log_name = "tools/" + spec.name + "." + phase_name;
        order.role = spec.role;
        order.phase = phase_name;
        order.argv = call->argv;
        order.environment = spec.environment;
        for (const auto& [key, value] : call->environment) order.environment[key] = value;
        order.cpus = roles_[spec.role];
        order.memory_nodes = memory_of(spec.role);
        order.speculation = spec.speculation;
        const auto live = [this, tool = tools_[i].get(), name = spec.name, phase_name](std::string_view line,
                                                                                       bool from_err) {
            auto sample = tool->parse_live_line(line, from_err);
            if (!sample) return;
            sample->labels["tool"] = name;
            sample->labels["phase"] = phase_name;
            recorder_->live(sample->name, sample->unit, sample->labels, sample->value);
        };
        order.on_out = [live](std::string_view line) { live(line, false); };
        order.on_err = [live](std::string_view line) { live(line, true); };
        PERFRIG_TRY(started[i], processes_->start(std::move(order)));
        deadlines.back() = Deadline::in(in_ms(call->at_most));
    }
    AffinityLooks looks;
    const Deadline at_least = Deadline::in(duration); // a measure without tools, or whose tools end early
    std::string hung;
    const auto done = [&] {
        if (measuring && looks.due(machine_.clock.monotonic_ns())) processes_->read_affinities();
        if (measuring) processes_->add_news(machine_.collectors.take_affinity_news());
        bool all = true;
        for (std::size_t i = 0; i < started.size(); ++i) {
            if (!started[i] || started[i]->exited) continue;
            all = false;
            if (deadlines[i].passed()) {
                hung = run_.tools[i].name;
                return true;
            }
        }
        return all && (!run_.tools.empty() || at_least.passed());
    };
    PERFRIG_CHECK(processes_->wait(Deadline::in(in_ms(longest_of(tools_, phase, duration)) + margin), done));
    for (RunProcess* process : started)
        if (process && !process->exited)
            return failed("tool '" + process->order.name +
                          "' hung: it had not ended when its time was over, and was killed" + process->last_words());
    if (measuring) end_measure(); // at once: what is waited for below would stretch the samples' window over idle time
    // Outputs are whole once the pipes have ended; a grandchild that holds one must not keep us.
    PERFRIG_CHECK(processes_->wait(Deadline::in(Milliseconds(2'000)), [&] {
        for (RunProcess* process : started)
            if (process && !(process->out->ended() && process->err->ended())) return false;
        return true;
    }));
    return started;
}

RunStep<void> Execution::warm() {
    machine_.sampler.attach(*recorder_);
    if (run_.warm_up_ms == 0 && run_.pause_ms == 0) return {};
    const Milliseconds warm_up(run_.warm_up_ms), pause(run_.pause_ms);
    enter("warming", in_ms(longest_of(tools_, ToolPhase::warm_up, warm_up)) + pause + margin);
    if (run_.warm_up_ms > 0) {
        begin_phase("warm_up", warm_up);
        PERFRIG_TRY(const auto processes, run_tools(ToolPhase::warm_up, warm_up));
        for (std::size_t i = 0; i < processes.size(); ++i) // what it measured is not used; that it worked is
            if (processes[i]) PERFRIG_CHECK(read_tool(run_.tools[i], *tools_[i], *processes[i], ToolPhase::warm_up));
        end_phase();
    }
    if (run_.pause_ms > 0) {
        begin_phase("pause", pause);
        PERFRIG_CHECK(processes_->pause(pause));
        end_phase();
    }
    return {};
}

RunStep<void> Execution::measure() {
    const Milliseconds duration(run_.measure_ms);
    const Nanoseconds longest = longest_of(tools_, ToolPhase::measure, duration);
    enter("measuring", in_ms(longest) + margin);
    processes_->tell_left_running();
    (void)machine_.collectors.take_affinity_news(); // of before; the first look below sees where they are now
    begin_phase("measure", run_.measure_ms > 0 ? std::optional(duration) : std::nullopt);
    measure_start_ns_ = machine_.sampler.tick_now();
    auto processes = run_tools(ToolPhase::measure, duration);
    end_measure(); // where a tool could not be started, hung, or the run was stopped
    record_placement();
    if (!processes) return std::move(processes).error();
    return read_metrics(*processes);
}

void Execution::end_measure() {
    if (!phase_open_) return;
    measure_end_ns_ = machine_.sampler.tick_now();
    processes_->add_news(machine_.collectors.take_affinity_news());
    end_phase();
    status_.change([](WorkStatus::View& view) { view.measuring = false; });
}

void Execution::record_placement() {
    for (const auto& process : processes_->all()) {
        const bool measured = process->order.phase == "measure" || process->order.must_live;
        if (!measured) continue;
        recorder_->event(process->evidence.observed(process->ordinal));
        if (const auto finding = process->evidence.finding()) recorder_->event(*finding);
    }
}

RunStep<void> Execution::read_tool(const ToolSpec& spec, const Tool& tool, RunProcess& process, ToolPhase phase) {
    const bool measuring = phase == ToolPhase::measure;
    const std::string what = "tool '" + spec.name + "'" + (measuring ? "" : " in warm-up");
    for (const auto& output : {process.out, process.err})
        if (const auto finished = output->finish(); !finished) return failed(finished.error());
    const auto out = read_file(process.out->path(), most_tool_output);
    const auto err = read_file(process.err->path(), most_tool_output);
    if (!out) return failed(out.error());
    if (!err) return failed(err.error());
    ToolOutput output{*out, *err, process.exited->status.code, process.exited->status.signal};
    output.elapsed_seconds = static_cast<double>(process.exited->end_ns - process.spawned.start_ns) / 1e9;
    const std::int64_t asked_ms = measuring ? run_.measure_ms : run_.warm_up_ms;
    if (asked_ms > 0) output.asked_seconds = static_cast<double>(asked_ms) / 1e3;
    output.out_dropped_bytes = process.out->dropped_bytes();
    output.err_dropped_bytes = process.err->dropped_bytes();
    const auto reading = tool.parse(output);
    const std::string ended = process.exited->status.good() ? "" : " (" + process.exited->status.text() + ")";
    if (!reading) return failed(what + ": " + reading.error().text() + ended);
    if (!measuring) {
        if (reading->status == ReadingStatus::no_result)
            return failed(what + " gave no result: " + reading->reason + ended);
        return {};
    }
    for (const ToolMetric& metric : reading->metrics) {
        protocol::MetricRead read;
        read.name = metric.name;
        read.unit = metric.unit;
        read.labels = metric.labels;
        if (run_.tools.size() > 1) read.labels["tool"] = spec.name; // names may repeat from tool to tool
        read.value = metric.value;
        read.window_start_ns = process.spawned.start_ns;
        read.window_end_ns = process.exited->end_ns;
        read.status = std::string(to_string(reading->status));
        recorder_->event(std::move(read));
    }
    if (!reading->facts.empty()) {
        Json facts = Json::object();
        for (const auto& [key, text] : reading->facts) facts[key] = text;
        recorder_->finding("tool_facts", "info", spec.name, "what " + spec.tool + " said that it did",
                           std::move(facts));
    }
    switch (reading->status) {
    case ReadingStatus::ok: break;
    case ReadingStatus::suspect:
    case ReadingStatus::overload:
        recorder_->finding("reading", "warning", spec.name,
                           std::string(to_string(reading->status)) + ": " + reading->reason);
        break;
    case ReadingStatus::invalid:
    case ReadingStatus::too_short:
        recorder_->finding("reading", "void", spec.name,
                           std::string(to_string(reading->status)) + ": " + reading->reason);
        break;
    case ReadingStatus::no_result: return failed(what + " gave no result: " + reading->reason + ended);
    }
    return {};
}

RunStep<void> Execution::read_metrics(const std::vector<RunProcess*>& processes) {
    RunStep<void> first_failure;
    for (std::size_t i = 0; i < processes.size(); ++i) { // all of them, so that what can be read is kept
        auto read = read_tool(run_.tools[i], *tools_[i], *processes[i], ToolPhase::measure);
        if (!read && first_failure) first_failure = std::move(read);
    }
    return first_failure;
}

} // namespace perfrig
