// Derived metrics of one run. All of them use ONE window: the measure phase, [start, end]. A counter contributes the
// difference between its first and its last reading inside the window, and its rate is that difference over the time
// between those two readings (readings never coincide with the phase's edges; samples outside it are never used).
// The window used stands in each metric (window_start_ns, window_end_ns: the earliest first and the latest last reading
// that entered it). Where an input is missing there is no metric, and a finding says which and why; never a zero. A
// window below 0.9 s gives no metric at all: two readings in it would differ by a few of the kernel's ticks of 10 ms.
//
//   cpu_busy_ratio{role, mode}          mode user (user + nice), system (system + irq + softirq), total (both): their
//                                       seconds of the role's granted CPUs / sum over these of the time. Steal is not
//                                       busy.
//   cpu_other_ratio{role, of}           the part of it that no process of the run used: see below
//   in_flight_ratio                     requests under way by Little's law, of each client (little_law.hpp)
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
//   thread_coverage_ratio{process}      CPU seconds of the threads / of the processes and of the children that they
//                                       waited for (used_cpu.hpp): what sampling missed because threads, or whole
//                                       processes, ended between two samples; a finding where it is outside 0.9 .. 1.1
//   agent_cpu_seconds, agent_cpu_ratio  the observer's own cost in the window; ratio: CPU seconds per second
//
// cpu_other_ratio: from the CPU seconds that the kernel booked to processes on the role's CPUs (user + nice + system)
// those of the processes of the role's services and tools are taken away, and on the monitor's CPUs the agent's; not
// below 0. What is left went to other programs and to kernel threads. Over: of=capacity the role's CPUs x the time (so
// it can be taken from cpu_busy_ratio), of=busy those user + nice + system seconds (so much of busy and of service
// demand is not the run's). Roles that share CPUs are counted together and have the same value. A finding (cpu_other)
// where it is above 5 % of capacity, or above 10 % of busy and 2 % of capacity. Its window ends with the last reading
// of the tool that ended first, since what that used afterwards nobody saw. A process that ended between two readings
// is covered by what its parent waited for (used_cpu.hpp).
//   Interrupts stay out of it: /proc/stat books them apart (irq, softirq: Documentation/filesystems/proc.rst, 1.7), to
// no process. But unless the kernel has CONFIG_IRQ_TIME_ACCOUNTING, a process's own utime + stime, which are scaled to
// the scheduler's run time (cputime_adjust() in kernel/sched/cputime.c), contain the interrupts that it was hit by: so
// the value is a lower bound, short by at most the irq + softirq time. /proc/stat itself is counted by ticks where the
// kernel has CONFIG_TICK_CPU_ACCOUNTING: whoever runs when the tick comes gets the whole of it. In a window of 4 s of
// one CPU at 250 Hz that is a standard error of up to 1.6 % of capacity.
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
