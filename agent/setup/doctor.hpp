// `perfrig-agent doctor`: what this machine can and can't do, and why. Reads and probes, changes nothing that lasts.
#pragma once

#include "agent/setup/config.hpp"
#include "common/base/file_tree.hpp"

#include <ostream>
#include <string>
#include <vector>

namespace perfrig {

struct Diagnosis {
    enum class Grade { good, note, bad }; // note: something can't be had here, runs that need it are refused
    Grade grade = Grade::good; // bad: runs would fail or be refused; without a configuration only what none can mend
    std::string what;          // "cgroups"
    std::string text;          // what was found
    std::string remedy;        // what to do; may be empty
};

Diagnosis examine_configuration(const AgentConfig& config); // which one, or what was assumed without
std::vector<Diagnosis> examine_machine(const AgentConfig& config, const FileTree& tree);
Diagnosis examine_controller(const AgentConfig& config);

// Prints all; 0: nothing is bad, else 1.
int doctor(const AgentConfig& config, std::ostream& out);

} // namespace perfrig
