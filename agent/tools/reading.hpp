// Helpers to fill in a Reading: metrics one a line, and a status that only gets worse.
#pragma once

#include "agent/tools/tool.hpp"

#include <cmath>

namespace perfrig {

inline void add(Reading& reading, std::string name, std::string unit, std::optional<double> value, Labels labels = {}) {
    if (value && !std::isfinite(*value)) value = std::nullopt;
    reading.metrics.push_back({std::move(name), std::move(unit), value, std::move(labels)});
}
inline double count(std::uint64_t n) { return static_cast<double>(n); }

// Takes over a status that is worse than what stands; further reasons of the same status are appended.
// Order: ok, suspect, overload, too short, invalid, no result.
void worsen(Reading& reading, ReadingStatus status, std::string_view reason);

// "it exited with status 2", "signal 9 ended it"; empty after exit status 0.
std::string how_it_ended(const ToolOutput& output);

// The last line of text that is not empty (error messages come last), cut to 200 bytes.
std::string last_line(std::string_view text);

// Nothing but this to say: the program gave no report.
Reading no_result(std::string reason);

// Worsens the reading when the run's own clock shows that the process ran far shorter or longer than asked.
void judge_elapsed(Reading& reading, const ToolOutput& output);

} // namespace perfrig
