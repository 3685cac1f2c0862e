// The process that reads ThreadCounts for the agent: the one thing in sampling that wants a capability. It keeps
// CAP_NET_ADMIN and nothing else, runs as the agent's user, tells only what /proc tells everybody (switches, name,
// age), and ends when the agent's end of its socket closes.
#pragma once

#include "common/base/cpu_list.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <string>
#include <sys/types.h>

namespace perfrig {

struct CountsReader {
    pid_t pid = -1; // a child of the caller
    UniqueFd agent; // the end for a ThreadCountsClient
};

// Errors as TaskStats::open(): forbidden, not_found. `agent_user` counts where the caller is root. `cpus` empty: not
// pinned.
Result<CountsReader> start_counts_reader(const FileTree& tree, const std::string& agent_user, const CpuList& cpus);

} // namespace perfrig
