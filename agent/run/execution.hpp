// One run from its first check to its end state, on the worker's thread. Reads top to bottom: check, prepare, warm,
// measure, stop, offer the artifacts, say how it ended. However it ends, everything it started is ended first.
#pragma once

#include "agent/run/interrupt.hpp"
#include "agent/run/run_machine.hpp"
#include "agent/run/run_processes.hpp"
#include "agent/run/run_stop.hpp"
#include "agent/run/work_status.hpp"
#include "agent/tools/tool.hpp"
#include "common/protocol/messages.hpp"

namespace perfrig {

struct RunOutcome {
    std::string state; // completed, or a RunStop's
    std::string reason;
    std::string leftovers;    // processes that could not be ended: nothing may be measured beside them
    bool helper_lost = false; // nothing can be promised any more: the agent must end
};

class Execution {
  public:
    Execution(const RunMachine& machine, std::int64_t block, const protocol::AssignedRun& assigned,
              Interrupt& interrupt, WorkStatus& status);
    // Never throws for what a run can bring about. Everything but the end state is recorded when it returns.
    RunOutcome work();
    // The last event; tries again until it is written, the deadline passes or `give_up` says so.
    Result<void> record_end(const RunOutcome& outcome, Deadline deadline, const std::function<bool()>& give_up = {});

  private:
    RunStep<void> check();
    RunStep<void> prepare();
    RunStep<void> build();
    RunStep<void> check_nobody_answers(); // where the services will
    RunStep<void> start_service(const ServiceSpec& service);
    RunStep<void> wait_until_ready(RunProcess& process, const ServiceSpec& service,
                                   const std::function<bool()>& log_seen);
    RunStep<void> warm();
    RunStep<void> measure();
    RunStep<std::vector<RunProcess*>> run_tools(ToolPhase phase, Milliseconds duration);
    RunStep<void> read_tool(const ToolSpec& spec, const Tool& tool, RunProcess& process, ToolPhase phase);
    RunStep<void> read_metrics(const std::vector<RunProcess*>& tools);
    RunStop of_helper(const Error& error); // who failed: the run, or the helper that it needs
    void end_measure();                    // the closing tick, then the phase's end; once
    void record_placement();
    void stop_services();
    void end_everything(RunStop* stop);
    void offer_artifacts();
    void take_environment(const char* when);

    CpuList memory_of(const std::string& role) const;
    void enter(const std::string& state, Milliseconds deadline);
    void begin_phase(const std::string& name, std::optional<Milliseconds> expected);
    void end_phase();

    const RunMachine& machine_;
    const std::int64_t block_;
    const protocol::AssignedRun assigned_;
    Interrupt& interrupt_;
    WorkStatus& status_;
    ResolvedRun run_; // filled in once ports and directory are known
    std::map<std::string, CpuList> roles_;
    std::unique_ptr<RunRecorder> recorder_;
    std::unique_ptr<OutputPump> pump_;
    std::unique_ptr<RunProcesses> processes_;
    std::vector<std::unique_ptr<Tool>> tools_;                         // as run_.tools
    std::vector<std::pair<RunProcess*, const ServiceSpec*>> services_; // started, in order
    std::vector<std::string> written_files_;
    std::string leftovers_;
    int phase_ = 0; // ordinal of the phase under way; 0: none yet
    bool phase_open_ = false;
    std::optional<ClockAnchor> first_anchor_;
    std::int64_t measure_start_ns_ = 0, measure_end_ns_ = 0;
};

} // namespace perfrig
