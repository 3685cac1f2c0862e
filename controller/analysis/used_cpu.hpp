// CPU seconds of services and tools in a window, processes that came and went between two readings included: what they
// used is in what their parents waited for (cutime and cstime of proc(5)). A waited-for process brings along what it
// had waited for itself, so what was seen of those that ended (all of their life, and what they had waited for) is
// taken from what was waited for, and what is left was never seen. Of a process whose parent ended first, or waits for
// none, nothing is known but its own readings: `unseen` is a lower bound.
#pragma once

#include "controller/analysis/counters.hpp"

namespace perfrig::analysis {

struct UsedCpu {
    double living = 0;         // seconds of processes that lived at the window's end
    double ended = 0;          // of those that ended in it, up to their last reading
    double waited = 0;         // what the kernel added to parents
    double seen_of_waited = 0; // the whole life of those that ended, as far as it was read
    std::int64_t last_ns = 0;  // of the latest reading
    double unseen() const { return waited > seen_of_waited ? waited - seen_of_waited : 0; }
    double seconds() const { return living + ended + unseen(); }
};

// By name of the service or tool, for the series that `takes` takes. The window begins and ends with readings.
std::map<std::string, UsedCpu> used_cpu(const SeriesIndex& index, const Window& window,
                                        const std::function<bool(const model::Series&)>& takes);

// How much a counter grew in the window, from zero where it was born in it, and the last reading; nothing where it
// ended before.
struct Growth {
    double by = 0, last = 0;
    std::int64_t last_ns = 0;
};
std::optional<Growth> growth(const model::Series& series, const Window& window);

} // namespace perfrig::analysis
