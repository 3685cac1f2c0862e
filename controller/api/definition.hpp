// An experiment's definition as it comes in a request's body: the file as it stands with options in the query, or JSON
// that holds both. And its check. Pure.
#pragma once

#include "common/experiment/experiment.hpp"
#include "common/experiment/plan.hpp"
#include "controller/api/services.hpp"

#include <optional>
#include <string>
#include <vector>

namespace perfrig::api {

constexpr std::size_t most_definition_bytes = 1 << 20;

struct Definition {
    std::string text;
    std::vector<std::string> overrides; // "phases.measure=4s"
    int priority = 0;                   // -1000 .. 1000, larger goes first
    std::string source;
    bool confirm = false; // yes to 10,000 cells or more
};
Result<Definition> read_definition(const Request& request);

struct CheckedDefinition {
    std::optional<Experiment> experiment;
    std::optional<Plan> plan;
    std::string refusal; // why not; empty: both are there
    std::vector<Fault> faults;
};
CheckedDefinition check_definition(const Definition& definition);

} // namespace perfrig::api
