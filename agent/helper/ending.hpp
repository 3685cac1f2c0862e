// Ending a run: everything it started, by cgroup, by descent and by mark, then its cgroup and its notes. The same for
// the guardian that does it in good order, for the helper when a guardian was lost, and for a sweep.
#pragma once

#include "agent/helper/run_cgroups.hpp"
#include "agent/helper/work_base.hpp"
#include "common/base/file_tree.hpp"

#include <functional>
#include <set>

namespace perfrig {

struct RunPlace { // where runs leave traces
    const FileTree& tree;
    const RunCgroups& cgroups;
    const WorkBase& work;
    Milliseconds time_to_end; // one run
};

// The name that this boot has in notes.
std::string this_boot(const FileTree& tree);

// The caller must be the subreaper above the run's processes. `spared`: children that are none of the run's.
RunEnded end_everything(const RunPlace& place, const RunName& run, const std::vector<pid_t>& spared,
                        const std::function<void()>& reap);

// Ends every run that left a trace, but those of `guarded`, whose guardians are `spared`. unavailable where something
// can't be ended.
Result<SweepReport> sweep_runs(const RunPlace& place, const std::set<RunName>& guarded,
                               const std::vector<pid_t>& spared, const std::function<void()>& reap);

// Ends what an earlier helper noted as started and what is still in the sessions of it. Processes that were started by
// another boot, or whose number is another process's by now, are left alone. Returns how many were killed.
std::int64_t end_noted(const FileTree& tree, const WorkBase::Noted& noted, const std::string& boot_id);

} // namespace perfrig
