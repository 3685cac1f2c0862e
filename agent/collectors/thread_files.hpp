// One thread: its files and counts, what they said last, and its series.
#pragma once

#include "agent/collectors/affinity_news.hpp"
#include "agent/collectors/collector.hpp"
#include "agent/collectors/kept_file.hpp"
#include "agent/collectors/proc_formats.hpp"
#include "common/base/cpu_list.hpp"
#include "common/process/affinity.hpp"
#include "common/process/thread_counts_channel.hpp"

#include <array>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace perfrig {

// What every reading of a tick shares.
struct ReadContext {
    std::vector<char> buffer = std::vector<char>(64 * 1024);
    OpenFileBudget budget;
    double ticks_per_second;
    double page_bytes;
    bool has_schedstat = true;            // until a kernel turns out to have none
    bool ask_affinity = false;            // of the kernel at every tick; until it turns out to be forbidden
    ThreadCountsClient* counts = nullptr; // null: switches are read from status
    std::vector<pid_t> counts_wanted{};   // in this tick, in the order of reading
    AffinityNews affinities{};            // since they were last taken
    AffinityMask mask{};                  // room for one
};

// The labels that all series of one process share.
struct ProcessLabels {
    std::string process, role, pid;
    pid_t pid_number = 0;
    std::map<std::string, std::string> map() const { return {{"process", process}, {"role", role}, {"pid", pid}}; }
};

class ThreadFiles {
  public:
    explicit ThreadFiles(pid_t tid);

    // Reads what may have changed. False: the thread is gone. `task_folder` is /proc/PID/task. Where counts of it are
    // wanted it says so in the context, and take_counts() or read_without_counts() must follow before emit().
    bool read(int task_folder, ReadContext& context, SampleSink& sink);
    bool wants_counts() const { return wants_counts_; }
    bool take_counts(const ThreadCounts& counts, int task_folder, ReadContext& context,
                     SampleSink& sink);                                                // false: gone
    bool read_without_counts(int task_folder, ReadContext& context, SampleSink& sink); // instead, when they failed
    // Hands the last reading to the sink; registers the series where that hasn't happened yet.
    void emit(const ProcessLabels& labels, ReadContext& context, SampleSink& sink);
    void end_series(SampleSink& sink);
    void forget_series() { ids_.fill(0); }

    pid_t tid() const { return tid_; }
    const std::string& comm() const { return comm_; }
    const CpuList& cpus() const { return cpus_; }
    const CpuList& nodes() const { return nodes_; }

  private:
    enum Series { user, system, cpu, wait, voluntary, involuntary, series_count };

    // Where a thread has used less than a clock tick since, its user and system time are read at most this many ticks
    // late.
    static constexpr int most_ticks_late = 10;

    enum class Step { unchanged, changed, gone };
    bool stat_can_wait(const ReadContext& context) const;
    bool read_stat_where_due(int task_folder, ReadContext& context, SampleSink& sink);
    Step read_schedstat(int task_folder, ReadContext& context, SampleSink& sink);
    bool read_stat(int task_folder, ReadContext& context, SampleSink& sink);
    bool read_status(int task_folder, ReadContext& context, SampleSink& sink);
    bool affinity_moved(ReadContext& context);
    void tell_affinity(const ProcessLabels& labels, AffinityNews& news);
    void take_list(std::string_view text, std::string& last_text, CpuList& list, SampleSink& sink);
    void register_series(const ProcessLabels& labels, bool has_schedstat, SampleSink& sink);
    void add_values(const ReadContext& context, SampleSink& sink);
    std::string place(const char* file) const { return "thread " + std::to_string(tid_) + ", " + file + ": "; }

    pid_t tid_;
    std::string schedstat_name_, stat_name_, status_name_; // relative to the task folder
    KeptFile schedstat_file_, stat_file_, status_file_;
    std::optional<SchedStat> sched_;
    bool complete_ = false;             // all three were understood at least once
    std::uint64_t stat_read_at_ns_ = 0; // CPU time of the thread when stat was last read
    int ticks_since_stat_ = 0;          // in which it ran
    std::uint64_t user_ticks_ = 0, system_ticks_ = 0, voluntary_ = 0, involuntary_ = 0;
    std::string comm_, registered_comm_;
    std::string name_text_; // comm as status writes it
    std::string cpus_text_, nodes_text_;
    CpuList cpus_, nodes_;
    std::optional<AffinityMask> mask_; // as the kernel said last when it was asked
    bool affinity_is_news_ = false;
    bool status_read_ = false; // and understood, at least once
    bool wants_counts_ = false;
    bool counts_first_ = false; // it ran when it was last read, so it will have run: schedstat is left out
    std::uint64_t age_us_ = 0;
    std::array<int, series_count> ids_{}; // 0: not registered
};

} // namespace perfrig
