// Every thread of the watched processes, once a tick, with files kept open: schedstat first (1 us), then, only where it
// says that the thread ran since, names and switches: by taskstats (2 us) where a privileged reader can be had, else
// from status (8 us); and stat (4 us) only where it also used up a clock tick of CPU, which is the unit that stat
// counts in, or ran in ten readings. So an idle thread costs one pread, and the user and system time of a nearly idle
// one lag by less than a clock tick. With taskstats, schedstat is left out for a thread that ran the last time: what it
// says comes with the counts too. New threads are looked for only where the number of threads (the link count of
// /proc/PID/task is 2 + threads) or a vanished one says that there is something to find.
//
// Where each thread may run is asked of the kernel at every tick (sched_getaffinity, 0.3 us), whether it ran or not;
// status is read where that has changed.
//
// Series, per thread, labels process, role, pid, tid, comm:
//   thread_cpu_user_seconds, thread_cpu_system_seconds   clock ticks (1/100 s) of stat
//   thread_cpu_seconds, thread_run_queue_wait_seconds    nanoseconds of schedstat; absent where the kernel has none
//   thread_voluntary_switches, thread_involuntary_switches
// per process, labels process, role, pid:
//   process_cpu_seconds                   user and system, threads that exited included: what coverage is held against
//   process_waited_children_cpu_seconds   children that ended and were waited for
//   process_rss_bytes                     statm; approximate on kernels with per-CPU counters (6.2 on)
// A thread that renames itself gets new series; the tick of the change carries the value under both.
#pragma once

#include "agent/collectors/affinity_news.hpp"
#include "agent/collectors/collector.hpp"
#include "common/base/file_tree.hpp"

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace perfrig {

// One service or tool. All processes of its cgroup are followed, where one is given; else the root process with all
// its descendants and the members of its process group, if it leads one. (A daemon that left the group and whose
// parent died between two ticks is only found through a cgroup.)
struct WatchedProcess {
    std::string process; // the service's or tool's name
    std::string role;
    pid_t root = 0;
    std::string cgroup; // folder within the tree that holds cgroup.procs ("/sys/fs/cgroup/freezer/..."); may be empty
};

class ThreadCountsClient;

class ThreadCollector final : public Collector {
  public:
    static constexpr std::size_t most_threads = 20'000; // more are not read, and that is a finding

    // At most `most_open_files` are kept open (three a thread, while they last); threads beyond are read by open, read
    // and close, which costs three times as much. 0: three quarters of this process's limit.
    // `counts`: where taskstats may be read; null: switches are read from files. It isn't owned, and once it fails
    // files are read for good, which is a finding.
    explicit ThreadCollector(FileTree tree, std::size_t most_open_files = 0, ThreadCountsClient* counts = nullptr);
    ~ThreadCollector() override;

    std::string_view name() const override { return "threads"; }
    void tick(std::int64_t now_ns, SampleSink& sink) override;

    void watch(WatchedProcess process);
    void unwatch(const std::string& process);
    AffinityNews take_affinity_news(); // since the last call
    std::size_t threads() const;       // that lived in the last tick
    void forget_series() override;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// The affinities of all threads of these processes, read now. Processes and threads that vanish are left out;
// anything else that can't be read or understood is an error.
Result<std::vector<ThreadAffinity>> read_affinities(const FileTree& tree, const std::vector<pid_t>& pids);

} // namespace perfrig
