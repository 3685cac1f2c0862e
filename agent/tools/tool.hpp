// A tool is a load or measuring program. An adapter says how to start it for a phase and how to read what it printed;
// it starts nothing and reads no file: values in, values out. The run writes the files, starts the process on its
// grant, feeds live lines while it runs and keeps the raw output as an artifact.
//
// Parsing is strict: output that does not have the tool's shape is an Error of that run. Output that has the shape but
// is worth nothing (no request completed, the clock stepped, every answer an error page) is a Reading that says so.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "common/experiment/tool_options.hpp"

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

using Labels = std::map<std::string, std::string>;

enum class ReadingStatus {
    ok,
    suspect,   // numbers stand, but something happened that a reader must know
    invalid,   // must not enter a comparison
    too_short, // it ran, but not long enough to mean anything
    overload,  // the asked rate was above what the service could do: latencies grow with the run's length
    no_result, // the program gave no report at all
};
std::string_view to_string(ReadingStatus status); // "ok", "suspect", "invalid", "too_short", "overload", "no_result"

// Units are "s", "1/s", "B", "B/s", "ratio" (0..1), "count"; `command` passes on the declared unit.
struct ToolMetric {
    std::string name;
    std::string unit;
    std::optional<double> value; // nullopt: the tool printed a placeholder (nan, 0.00us) and no number may be stored
    Labels labels;               // {quantile: "0.99"}, {stat: "mean"}, {kind: "timeout"}, {script: "1"} ...
};

struct Reading {
    ReadingStatus status = ReadingStatus::ok;
    std::string reason; // why it is not ok; with ok at most a remark
    std::vector<ToolMetric> metrics;
    std::map<std::string, std::string> facts; // what the tool said it did, as text: threads, query_mode, version ...

    const ToolMetric* find(std::string_view name, const Labels& labels = {}) const; // exact labels; nullptr: none
};

struct LiveSample {
    std::string name; // of the series: "transactions_per_second"
    std::string unit;
    double value = 0;
    Labels labels;
};

enum class ToolPhase { warm_up, measure };

struct ToolFile { // to be written in the tool's working directory before it starts
    std::string name;
    std::string content;
};

struct ToolInvocation {
    std::vector<std::string> argv;                       // argv[0] is searched in PATH
    std::map<std::string, std::string> environment = {}; // over the experiment's own: locale and time format are forced
    std::vector<ToolFile> files = {};                    // argv names them relative to the working directory
    Nanoseconds at_most{}; // from start to exit; past it the tool hangs and the run ends it
};

// What a finished process left behind. The views need only live during the call.
struct ToolOutput {
    std::string_view out = {};
    std::string_view err = {};
    int exit_code = 0;                                    // meaningless when a signal ended it
    int signal = 0;                                       // 0: it exited by itself
    std::optional<double> elapsed_seconds = std::nullopt; // from start to exit, as the run measured it
    std::optional<double> asked_seconds = std::nullopt;   // the phase's duration
    // Bytes of the middle that the bound of logs cost; in their place stands dropped_mark() of them.
    std::uint64_t out_dropped_bytes = 0;
    std::uint64_t err_dropped_bytes = 0;
};

// What stands in a bounded log for bytes that were dropped: a line of its own, between two lines that may be torn.
std::string dropped_mark(std::uint64_t bytes);

class Tool {
  public:
    virtual ~Tool() = default;
    virtual std::string_view name() const = 0;
    // Fails only when this tool can't run for that long (wrk: whole seconds).
    virtual Result<ToolInvocation> invocation(ToolPhase phase, Nanoseconds duration) const = 0;
    virtual Result<Reading> parse(const ToolOutput& output) const = 0;
    // One line without its end, as it comes while the tool runs; nullopt for every other line. Never fails.
    virtual std::optional<LiveSample> parse_live_line(std::string_view line, bool from_stderr) const;
    // How to ask the program for its version, and what it answered. Empty: it has none. The exit status of that call
    // means nothing (wrk -v exits 1).
    virtual std::vector<std::string> version_argv() const { return {}; }
    virtual Result<std::string> parse_version(std::string_view out, std::string_view err) const;
};

// Options as the resolved experiment has them (already substituted). Bad options: one bad_input Error naming all
// faults.
Result<std::unique_ptr<Tool>> make_tool(std::string_view name, const nlohmann::json& options);

// What every tool runs under, on top of its own: messages and numbers as C prints them, times as ISO 8601.
std::map<std::string, std::string> forced_tool_environment(); // LC_ALL=C, S_TIME_FORMAT=ISO

// The same check, every fault by itself.
std::vector<OptionFault> validate_tool_options(std::string_view name, const nlohmann::json& options);

} // namespace perfrig
