// What helper and guardian have in common as processes: deaf to signals that go to the whole group (a terminal's
// Ctrl-C, systemd's SIGTERM: they end on end of file, not before the agent), with SIGCHLD as a descriptor to poll.
#pragma once

#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <vector>

namespace perfrig {

// Ignores signals, takes a session of its own, becomes a subreaper, names itself (at most 15 bytes), and closes every
// descriptor but 0-2 and those of `keep`. Returns the signalfd of SIGCHLD.
Result<UniqueFd> set_up_process(const FileTree& tree, const char* name, const std::vector<int>& keep);
void drain_signals(int signal_fd);

} // namespace perfrig
