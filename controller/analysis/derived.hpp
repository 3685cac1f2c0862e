// Derived metrics of one run. All of them use ONE window: the measure phase, [start, end]. A counter contributes the
// difference between its first and its last reading inside the window, and its rate is that difference over the time
// between those two readings (readings never coincide with the phase's edges; samples outside it are never used).
// The window used stands in each metric (window_start_ns, window_end_ns: the earliest first and the latest last reading
// that entered it). Where an input is missing there is no metric, and a finding says which and why; never a zero.
//
//   cpu_busy_ratio{role, mode}          mode user (user + nice), system (system + irq + softirq), total (both): seconds
//   of
//                                       the role's granted CPUs / sum over them of the time. Steal is not busy.
//   context_switches_per_second{process, kind}    kind voluntary or involuntary, summed over the process's threads
//   context_switches_per_request{process, kind}   that rate / throughput
//   run_queue_wait_ratio{process, of}   of=thread: seconds waited / sum over threads of the time each was seen (the
//                                       share of its life in which a thread was ready but had no CPU);
//                                       of=demand: waited / (waited + CPU seconds) (the share of the time in which
//                                       threads wanted a CPU that they did not have one)
//   thread_group_cpu_ratio{process, group}        CPU seconds per second: 1 is one CPU busy all the time
//   thread_group_run_queue_wait_ratio{process, group}   of=demand, as above
//   thread_group_switches_per_second{process, group, kind}, thread_group_threads{process, group}
//                                       group: the thread's name without trailing digits and their separators
//                                       ("executor-thread-12" -> "executor-thread", "http#3" -> "http")
//   service_demand_seconds{role}        CPUs x busy (total) / throughput: the utilisation law S = m U / X (Denning and
//                                       Buzen, 1978), CPU seconds of the role that one request cost
//   thread_coverage_ratio{process}      CPU seconds of the threads / of the process (process_cpu_seconds): what
//   sampling
//                                       missed because threads exited between two samples
//   agent_cpu_seconds, agent_cpu_ratio  the observer's own cost in the window; ratio: CPU seconds per second
//
// Throughput is what the one tool of the run that has any says of itself: requests_per_second, transactions_per_second
// or operations_per_second, over a window of its own that must cover at least four fifths of the readings'. A thread
// that was born inside the window has counted from zero: its first reading counts as a whole. One that renamed itself
// goes on under the new name from the reading that both names share.
#pragma once

#include "controller/analysis/run_data.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace perfrig::analysis {

// The measure phase of a run that went through it; none where there is none or it did not end.
std::optional<Window> measure_window(const std::vector<model::Phase>& phases);

std::string thread_group(std::string_view comm);

// The names of all series that derive() looks at.
std::span<const std::string_view> series_wanted();

Evaluation derive(const RunData& data);

} // namespace perfrig::analysis
