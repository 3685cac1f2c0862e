// Who is whose child, for following a service into the processes it forks. Kernels differ in whether they list the
// children of a thread, so the table reads every process's parent once, when it is first seen; and it looks for new
// ones only when the last pid that the kernel gave out has changed.
#pragma once

#include "agent/collectors/collector.hpp"
#include "common/base/file_tree.hpp"

#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace perfrig {

class ProcessTable {
  public:
    explicit ProcessTable(FileTree tree) : tree_(std::move(tree)) {}

    void refresh(SampleSink& errors);                              // once a tick
    void forget(pid_t pid) { entries_.erase(pid), last_pid_ = 0; } // it ended: its number may be another's by now

    // `members` with all their descendants, and what is in a process group that `root` leads. root 0: none.
    std::set<pid_t> family(pid_t root, std::set<pid_t> members) const;

  private:
    struct Entry {
        pid_t parent = 0, group = 0;
    };
    FileTree tree_;
    std::int64_t last_pid_ = 0;
    std::map<pid_t, Entry> entries_;
};

// All processes of a cgroup folder and of the folders below it; nothing where it is gone.
std::set<pid_t> cgroup_processes(const FileTree& tree, const std::string& folder, SampleSink& errors);

} // namespace perfrig
