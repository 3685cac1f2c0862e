// What each tool can be told: one table of options a tool, as data, and the check of an experiment's options against
// it. The experiment validator (on any machine) and the agent's tool adapters read the same table, so a file that is
// accepted at the door is not refused at the machine.
//
// Options are checked after substitution. A level of a factor keeps its text, so "50" is accepted where 50 is wanted,
// and "true" where true is. Text that only the agent can fill in (${run.directory}, ${port.NAME}) may stand for any
// value; make_tool refuses what is left of it.
#pragma once

#include "common/base/clock.hpp"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

enum class OptionType {
    text,      // a string, not empty
    integer,   // a whole number within [minimum, maximum]
    number,    // a finite number within [minimum, maximum]
    boolean,   // true or false
    duration,  // "30s": text with a unit; [minimum, maximum] in seconds
    text_list, // a list of strings
    text_map,  // an object whose values are strings
    objects,   // a list of objects that follow `members`
    command,   // a list of strings (argv), or one string that /bin/sh -c runs
};

struct OptionSpec {
    std::string_view name;
    OptionType type;
    std::string_view help; // one line, for --help and generated documentation
    bool required = false;
    std::string_view unit = {}; // of the value; empty where it has none
    double minimum = 0;
    double maximum = 0;                          // minimum == maximum: unbounded
    std::string_view fallback = {};              // what holds when it isn't given, as text; empty: nothing
    std::span<const std::string_view> choices{}; // the only values allowed, if any
    std::span<const OptionSpec> members{};       // of each object of `objects`
};

struct ToolDescription {
    std::string_view name;
    std::string_view help;
    std::span<const OptionSpec> options;
};

// Every tool there is, in the order in which help shows them.
std::span<const ToolDescription> tool_descriptions();
const ToolDescription* find_tool_description(std::string_view tool); // nullptr: no such tool

struct OptionFault {
    std::string path;       // within the options: "connections", "metrics/0/unit"; empty: the tool's name itself
    std::string message;    // what is wrong
    std::string suggestion; // what to write instead; may be empty
};

// Every fault at once; empty: the options are good. Types, ranges, unknown names (with the nearest known name), and
// what options demand of each other. Never throws.
std::vector<OptionFault> check_tool_options(std::string_view tool, const nlohmann::json& options);

// A name that collectors or the analysis give to what they find out themselves: a tool's own metric or series of that
// name would pass for it, or be added to it.
bool is_reserved_metric(std::string_view name);

// Whether the tool can run for exactly this long: wrk and pgbench take whole seconds only, and need a duration; 0 ("as
// long as it takes") is for tools that end by themselves. `phase` ("warm_up", "measure") becomes the fault's path.
std::vector<OptionFault> check_tool_duration(std::string_view tool, std::string_view phase, Nanoseconds duration);

} // namespace perfrig
