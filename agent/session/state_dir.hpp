// The agent's state directory: one agent per directory (a lock says so), the epoch that counts its starts, and where
// everything else lies.
//
//   lock          held (flock) while an agent runs
//   epoch         how often an agent was started here; grows durably before anything is spooled
//   block.json    the block in hand (agent/run/block_state.hpp)
//   spool/        records that the controller doesn't have yet
//   artifacts/    bytes that the controller doesn't have yet, by run
//   logs/         output of the run that goes on
//   scrape.json   hashes of the tokens that may read /metrics, as the controller last said
#pragma once

#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace perfrig {

class StateDir {
  public:
    // Makes the directory (0711: the workload's user passes through it, and reads nothing) and takes the lock.
    // conflict: another agent holds it; the message says which pid.
    static Result<StateDir> lock(const std::string& path);

    // Where root starts the agent: the directory and its lock become the user's that the agent will be.
    Result<void> give_to(unsigned uid, unsigned gid) const;

    // Raises the epoch on disk and returns it: 1 at the first start.
    Result<std::int64_t> next_epoch() const;

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    StateDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
    std::string path_;
    UniqueFd lock_;
};

} // namespace perfrig
