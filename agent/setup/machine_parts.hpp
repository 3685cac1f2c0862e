// The parts of an agent that touch the machine, in the order in which they must come: lock, helper (a fork, before any
// thread), the agent's own user, epoch, spool, collectors. Shared by `run` and `work`.
#pragma once

#include "agent/helper/start.hpp"
#include "agent/run/run_machine.hpp"
#include "agent/session/spool.hpp"
#include "agent/session/state_dir.hpp"
#include "agent/setup/config.hpp"

namespace perfrig {

struct MachineParts {
    SystemClock clock;
    StateDir state;
    HelperClient helper;
    HelperFacts facts;
    std::unique_ptr<Spool> spool;
    std::string thread_source; // "taskstats" or "proc"
    CollectorSet collectors;
    Sampler sampler;
    RunMachine machine;

    // Call before any thread exists.
    static Result<std::unique_ptr<MachineParts>> make(const AgentConfig& config);

  private:
    MachineParts(const AgentConfig& config, StateDir lock, HelperClient client, HelperFacts found,
                 std::unique_ptr<Spool> opened, UniqueFd counts);
};

} // namespace perfrig
