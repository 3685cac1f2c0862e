// One process: its threads, found and read, and its own totals.
#pragma once

#include "agent/collectors/thread_files.hpp"
#include "common/base/file_tree.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace perfrig {

class ProcessThreads {
  public:
    // Nothing where the process is gone or can't be opened (the latter is reported).
    static std::unique_ptr<ProcessThreads> open(const FileTree& tree, pid_t pid, ProcessLabels labels,
                                                SampleSink& errors);

    // A tick has three steps, so that the counts of all processes are asked for at once in between.
    // 1. Reads all threads, new ones included; at most `most_threads`.
    void read(ReadContext& context, std::size_t most_threads, SampleSink& sink);
    // 2. Takes the counts that it asked for; they are by rising thread id. Empty: there are none, files are read
    // instead.
    void take_counts(std::span<const ThreadCounts> counts, ReadContext& context, SampleSink& sink);
    // 3. Hands everything over, and reads the process's totals; false: it ended (its series have been ended).
    bool emit(ReadContext& context, SampleSink& sink);
    void end_series(SampleSink& sink);
    void forget_series();

    std::size_t threads() const { return threads_.size(); }
    std::size_t threads_left_out() const { return left_out_; }
    const ProcessLabels& labels() const { return labels_; }
    pid_t pid() const { return pid_; }
    template <class F> void each_thread(F f) const {
        for (const auto& [tid, thread] : threads_) f(*thread);
    }

  private:
    enum Series { cpu, waited_children, rss, series_count };

    ProcessThreads(pid_t pid, UniqueFd process_folder, UniqueFd task_folder, ProcessLabels labels);
    template <class StillThere> void keep_threads(StillThere still_there, SampleSink& sink);
    void find_threads(ReadContext& context, std::size_t most_threads, SampleSink& sink);
    bool read_totals(ReadContext& context, SampleSink& sink);
    bool something_to_find() const;
    void register_series(SampleSink& sink);

    pid_t pid_;
    UniqueFd process_folder_, task_folder_; // refer to this process for ever, whoever gets its number
    ProcessLabels labels_;
    KeptFile stat_file_, statm_file_;
    std::map<pid_t, std::unique_ptr<ThreadFiles>> threads_;
    bool vanished_ = true; // a thread vanished, or none was read yet
    std::size_t left_out_ = 0;
    std::array<int, series_count> ids_{};
};

// The numbers in a folder (threads in /proc/PID/task), read from its descriptor.
Result<std::vector<pid_t>> list_numbers(int folder);

} // namespace perfrig
