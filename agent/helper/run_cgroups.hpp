// The cgroups of runs: made, joined, emptied, removed. Used by the helper and by guardians, which alone have the
// rights. Every operation re-reads the file system and keeps no state, so that a successor can finish what a killed one
// began.
#pragma once

#include "agent/helper/cgroup.hpp"
#include "agent/helper/messages.hpp"
#include "common/base/clock.hpp"
#include "common/base/unique_fd.hpp"

#include <functional>
#include <optional>

namespace perfrig {

struct ProcessCgroup {
    std::vector<UniqueFd> procs;      // cgroup.procs, open for writing: joined by the process before exec
    std::vector<std::string> folders; // absolute, of this process alone
    CgroupCpuset cpuset = CgroupCpuset::none;
    std::string cpuset_why; // where none
};

class RunCgroups {
  public:
    RunCgroups(FileTree tree, CgroupPlan plan) : tree_(std::move(tree)), plan_(std::move(plan)) {}

    const CgroupPlan& plan() const { return plan_; }
    // Makes the base folders and enables what the plan wants; what can't be had is struck from the plan, with the
    // reason.
    void prepare(const std::vector<int>& ours);
    // `most_processes`: of the whole run, threads counted; 0: no limit.
    Result<void> make_run(const RunName& run, std::int64_t most_processes) const;
    // The limit that the kernel shows for the run; none where no cgroup holds it to one.
    std::optional<std::int64_t> process_limit(const RunName& run) const;
    // How often the kernel refused the run a process or thread for that limit (pids.events).
    std::int64_t refused_processes(const RunName& run) const;
    // A folder for a process of the run. `cpus` and `nodes` empty: as the run has them.
    Result<ProcessCgroup> make_process(const RunName& run, const std::string& name, const CpuList& cpus,
                                       const CpuList& nodes) const;
    // Kills every process in the run's cgroups and removes them; done when they are gone. `between` is called between
    // looks (to reap). Returns how many processes were seen to be killed.
    Result<std::int64_t> end_run(const RunName& run, Deadline deadline, const std::function<void()>& between) const;
    std::vector<RunName> runs() const; // whose folders exist
    void remove_base() const;          // where empty
    // Empty bases that an earlier start had in other places than this one.
    void remove_empty() const;

  private:
    std::vector<std::string> bases() const;
    std::string kill_base() const { return plan_.kill_parent + "/" + plan_.base_name; }
    std::string pids_base() const { return plan_.pids_parent + "/" + plan_.base_name; }
    std::string cpuset_base() const { return plan_.cpuset_parent + "/" + plan_.base_name; }
    Result<void> make_folder(const std::string& path) const;
    Result<void> write(const std::string& path, std::string_view text) const;
    Result<void> inherit_v1_cpuset(const std::string& folder) const;
    Result<void> fill_cpuset(const std::string& folder, const CpuList& cpus, const CpuList& nodes) const;
    std::vector<pid_t> processes_below(const std::string& folder) const;
    std::int64_t kill_once(const std::string& folder) const;
    bool remove_below(const std::string& folder) const;

    FileTree tree_;
    CgroupPlan plan_;
};

} // namespace perfrig
