// What a run leaves on the machine outside of its directory: files of the workload's user in the folders that everybody
// may write to, and System V shared memory, semaphores and message queues (which outlive a killed PostgreSQL). Found as
// the difference between two looks, at the run's begin and at its end; removed as the workload's user, so that no link
// and no race reaches further than that user could anyway.
//
// Only the first level of each folder is looked at: a file within another user's folder there is not found. Nothing is
// found while other runs are open, since it could be theirs. What the user had before the run and was changed by it
// stays as it is.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/process/users.hpp"

#include <set>
#include <string>
#include <vector>

namespace perfrig {

struct Trace {
    std::string folder, name; // a file: "/tmp", "x"; System V: "shm", "sem" or "msg", and the id
    std::uint64_t inode = 0;  // of a file
    std::string text() const; // "/tmp/x", "System V shm 12"
    bool operator<(const Trace& other) const;
};

struct TraceLook {
    std::set<Trace> traces;
    bool whole = true;            // false: more files than are looked at
    bool user_has_others = false; // processes: somebody works as this user
};

// Everything that belongs to the user, in /tmp, /var/tmp, /dev/shm, /dev/mqueue and the System V tables.
TraceLook look_for_traces(const FileTree& tree, uid_t uid);

// What is new since `before`, each with what became of it: "/tmp/x (removed)". With `remove` false it is only told.
std::vector<std::string> clear_traces(const FileTree& tree, const TraceLook& before, const User& user, bool remove,
                                      Deadline deadline);

} // namespace perfrig
