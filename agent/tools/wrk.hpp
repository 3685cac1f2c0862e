// wrk: HTTP load in a closed loop. Its rates and counts are sound; its latencies need care (wrk.c, stats.c of wrk 4):
//
// * A latency runs from the moment wrk found the connection writable to the end of the answer, in whole us. The way
//   from one answer through wrk's event loop to the next request is in no latency, but in the rate.
// * They are counted in a histogram, and when the run has ended wrk "corrects" it (stats_correct): with the mean turn
//   T = run time x connections / requests it adds, for each latency L of at least 2 T, made-up ones of L - T, L - 2 T
//   and so on down to T. That is a cure for omitted requests of a load with a fixed rate. A closed loop omits none: a
//   single stall of 4 ms at T = 30 us adds 132 latencies with a mean of 2 ms. The fewer the connections, the shorter T
//   and the larger the effect. Mean, deviation and every quantile that wrk prints are of the histogram so changed: the
//   mean can be many times too high, p99 is weighed by the length of stalls, p50 moves by a few per cent; the maximum
//   is real.
// * Latencies beyond --timeout are in no histogram: they are counted as timeouts.
//
// So tables show p50 and p99 and not the mean, and where the mean contradicts the rate by Little's law a finding says
// so (controller/analysis/little_law.hpp). For that a reading without a script has `concurrency`: the connections.
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
