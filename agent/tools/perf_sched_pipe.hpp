// perf bench sched pipe: two tasks hand a message to and fro over two pipes; one operation is there and back, so two
// context switches where both are on one CPU. Between processes and (-T) between threads: a cost that shows only across
// processes is that of changing the address space, IBPB included. It runs for a number of loops, not for a time, and
// it pins nothing: the grant decides on which CPUs the two meet.
#pragma once

#include "agent/tools/tool.hpp"

namespace perfrig {

class OptionValues;

std::unique_ptr<Tool> make_perf_sched_pipe(const OptionValues& options);

} // namespace perfrig
