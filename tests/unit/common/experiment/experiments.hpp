// Experiment texts for the tests of parse, expand and resolve.
#pragma once

#include "common/experiment/plan.hpp"
#include "tests/support/doctest.hpp"

#include <string>

namespace perfrig {

inline std::string texts(const std::vector<Fault>& faults) {
    std::string out;
    for (const Fault& fault : faults) out += fault.text("f") + "\n";
    return out;
}

inline Experiment parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
    ParseOutcome out = parse_experiment(text, overrides);
    REQUIRE_MESSAGE(out.faults.empty(), texts(out.faults));
    REQUIRE(out.experiment);
    return std::move(*out.experiment);
}

// An experiment whose tool prints each factor: head is written before, and after, what every one needs.
inline std::string with_factors(const std::vector<std::pair<std::string, std::vector<std::string>>>& factors,
                                const std::string& head = {}) {
    std::string out = "perfrig: 1\nname: test\n" + head;
    std::string arguments;
    if (!factors.empty()) out += "factors:\n";
    for (const auto& [name, levels] : factors) {
        out += "  " + name + ": [";
        for (std::size_t i = 0; i < levels.size(); ++i) out += (i ? ", " : "") + levels[i];
        out += "]\n";
        arguments += ", \"${" + name + "}\"";
    }
    return out + "tools:\n  t:\n    tool: command\n    role: load\n    command: [echo" + arguments +
           "]\n    metrics: [{name: v, unit: s, pattern: \"(1)\"}]\nphases: {measure: 2s}\n";
}

} // namespace perfrig
