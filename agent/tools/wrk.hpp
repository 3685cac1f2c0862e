// wrk: HTTP load in a closed loop. Its latencies leave out the time that a request would have waited for its turn, and
// it stamps a start one wait cycle late; its rates and counts are sound.
#pragma once

#include "agent/tools/tool.hpp"
#include "agent/tools/wrk_report.hpp"

namespace perfrig {

class OptionValues;

std::unique_ptr<Tool> make_wrk(const OptionValues& options);

// What must or may stand beside the report, by the options that wrk was started with.
struct WrkExpectation {
    bool script_may_print = false;     // lines before and after it
    bool distribution_required = true; // --latency was given
};

// The output as a whole: a report and what it is worth, no report at all (no_result), or an Error. Pure.
Result<Reading> read_wrk(const ToolOutput& output, const WrkExpectation& expected);

} // namespace perfrig
