// The folder that runs get their directories in, and what is done to files there for the agent. Everything below a
// run's directory is touched as the workload's user, from a descriptor of the base on, part by part, following no link:
// the workload may have put there whatever it liked.
#pragma once

#include "agent/helper/messages.hpp"
#include "common/base/clock.hpp"
#include "common/base/unique_fd.hpp"
#include "common/process/users.hpp"

namespace perfrig {

class WorkBase {
  public:
    // Makes it where it is missing. Refuses one that another user owns or may write to, or that `workload` can't pass.
    static Result<WorkBase> open(const std::string& path, const User& workload);

    const std::string& path() const { return path_; }
    const User& workload() const { return workload_; }
    std::string directory_of(const RunName& run) const { return path_ + "/" + run.text(); }
    // conflict where it exists already.
    Result<std::string> make_run_directory(const RunName& run) const;
    Result<void> write_file(const RunName& run, const std::string& path, int mode, std::string_view content) const;
    Result<UniqueFd> open_file(const RunName& run, const std::string& path) const;  // for reading; regular files alone
    Result<void> remove_run_directory(const RunName& run, Deadline deadline) const; // nothing there: nothing done
    std::vector<RunName> runs() const;                                              // whose directories exist
    std::vector<int> descriptors() const { return {base_.get(), notes_.get()}; }

    // Notes of the processes that runs started, for a sweep after helper and guardian were both killed. One file a run:
    // the boot id, then "pid start_ticks" a line. Below the base, so that only the helper can write it.
    Result<void> note_begin(const RunName& run, const std::string& boot_id) const;
    Result<void> note_process(const RunName& run, pid_t pid, std::uint64_t start_ticks) const;
    void note_end(const RunName& run) const;
    struct Noted {
        RunName run;
        std::string boot_id;
        std::vector<std::pair<pid_t, std::uint64_t>> processes;
    };
    std::vector<Noted> noted() const;

  private:
    Result<UniqueFd> open_parent(const RunName& run, const std::vector<std::string>& parts, bool make) const;
    std::string path_;
    User workload_;
    UniqueFd base_;
    UniqueFd notes_;
};

} // namespace perfrig
