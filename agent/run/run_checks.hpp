// Everything that can be known before a run starts anything. What fails here refuses the run in plain words.
#pragma once

#include "agent/run/run_machine.hpp"
#include "agent/run/run_stop.hpp"
#include "agent/tools/tool.hpp"
#include "common/experiment/resolved.hpp"
#include "common/placement/placement.hpp"
#include "common/process/speculation.hpp"

#include <memory>
#include <vector>

namespace perfrig {

struct CheckedRun {
    std::map<std::string, CpuList> roles; // grants
    std::vector<PlacementFault> findings; // roles that share CPUs by the profile's leave
};

// Placement, kernel arguments, speculation controls, tools (options and binaries), limits of the profile.
RunStep<CheckedRun> check_run(const RunMachine& machine, const ResolvedRun& run);

// Where PATH (folders separated by colons) finds an executable; empty: nowhere. Names with a slash are returned as
// they are.
std::string find_program(const std::string& name, const std::string& search_path);
// "apt-get install wrk" and the like, for programs that tools need; empty where nothing is known.
std::string package_remedy(std::string_view program);

RunStep<SpeculationAsk> speculation_ask(const Speculation& wish, const std::string& of);
// The longest that the run can take by its own deadlines.
Milliseconds nominal_time(const ResolvedRun& run);

} // namespace perfrig
