// The processes of one run: starts them through the run's guardian with their grant, records start, affinity and end,
// and waits while watching over all of them at once. Used by the run's thread alone.
#pragma once

#include "agent/helper/client.hpp"
#include "agent/run/interrupt.hpp"
#include "agent/run/output_pump.hpp"
#include "agent/run/placement_evidence.hpp"
#include "agent/run/run_machine.hpp"
#include "agent/run/run_stop.hpp"
#include "common/experiment/resolved.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace perfrig {

struct StartOrder {
    std::string name;     // of the service or tool, as the experiment has it
    std::string log_name; // of its artifacts, without ".stdout" and ".stderr"
    std::string role, phase;
    std::string cgroup;     // shared by all that name the same; "": one of its own
    bool must_live = false; // a service: its end is a failure until expect_end()
    bool sampled = true;    // its threads are collected
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment; // over the run's own
    std::string directory;
    CpuList cpus, memory_nodes;
    Speculation speculation;
    ProcessOutput::LineListener on_out, on_err;
};

struct RunProcess {
    int ordinal = 0;
    StartOrder order;
    Spawned spawned;
    std::shared_ptr<ProcessOutput> out, err;
    std::optional<ProcessExited> exited;
    bool must_live = false;
    PlacementEvidence evidence;
    std::string last_words() const; // the last lines it printed, for reasons
};

class RunProcesses {
  public:
    RunProcesses(const RunMachine& machine, RunGuard guard, RunRecorder& recorder, Interrupt& interrupt,
                 OutputPump& pump, std::vector<std::string> secrets);

    RunStep<RunProcess*> start(StartOrder order);
    // Until `done` says so (asked after every event and every 50 ms): true; false at the deadline. Stops the run when
    // it is interrupted, when the guardian is lost, or when something that must live has ended.
    RunStep<bool> wait(Deadline deadline, const std::function<bool()>& done);
    RunStep<void> pause(Milliseconds time); // waits for the time alone
    // Signal, grace, SIGKILL to what is left of its process group. Never fails: what can't be ended here, end() ends.
    void stop(RunProcess& process, const std::string& signal, Milliseconds grace);
    void expect_end(RunProcess& process) { process.must_live = false; }
    void read_affinities();                  // of every process that lives, now
    void tell_left_running();                // a finding for each that has ended and whose processes have not
    void add_news(const AffinityNews& news); // what the collectors saw in measure, process by process
    // Ends everything the run started, cgroup and all; records the exits. Idempotent.
    Result<RunEnded> end_all();

    const std::string& directory() const { return guard_.directory(); }
    const std::vector<std::unique_ptr<RunProcess>>& all() const { return processes_; }
    RunRecorder& recorder() { return recorder_; }

  private:
    RunStep<std::shared_ptr<ProcessOutput>> output(const StartOrder& order, int ordinal, const char* which,
                                                   const ProcessOutput::LineListener& listener, UniqueFd& write_end);
    void exited(ProcessExited event);
    void check_limit(const Spawned& spawned);
    RunStep<void> look(); // at what has happened; stops the run where that demands it
    bool take_events(Milliseconds at_most);
    const RunMachine& machine_;
    RunGuard guard_;
    RunRecorder& recorder_;
    Interrupt& interrupt_;
    OutputPump& pump_;
    const std::vector<std::string> secrets_;
    std::vector<std::unique_ptr<RunProcess>> processes_;
    std::optional<std::string> guard_lost_;
    bool limit_told_ = false;
};

int signal_number(const std::string& name); // "TERM", "SIGINT"; 0: no such signal
// The processes of a started one: those of its cgroup; where it has none, its descendants and its process group.
std::vector<pid_t> pids_of(const FileTree& tree, const Spawned& spawned);

} // namespace perfrig
