// The agent as a whole: builds the object graph and runs it until a signal or a broken promise ends it.
#pragma once

#include "agent/setup/config.hpp"

namespace perfrig {

// Exit status: 0 ended by a signal, 2 bad configuration, 3 broken (start it again).
int run_agent(const AgentConfig& config, const std::string& version);

// Works the runs of a file without a controller and prints what was recorded, one JSON object a line:
//   {"runs": [{"run": 1, "attempt": 1, "resolved": {...}}]}
// For trying out a machine, an experiment or the agent itself. 0: every run completed; 1: one did not.
int work_file(const AgentConfig& config, const std::string& file);

} // namespace perfrig
