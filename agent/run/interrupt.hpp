// What ends a run from outside, set by any thread, seen by the run within milliseconds in whatever it waits for.
#pragma once

#include "common/base/unique_fd.hpp"

#include <mutex>
#include <optional>
#include <string>

namespace perfrig {

class Interrupt {
  public:
    enum class Kind {
        cancel,     // the controller cancelled the run: it ends as cancelled
        shutdown,   // the agent stops: interrupted
        lease_lost, // the block is no longer ours: interrupted
        broken,     // something that the run needs broke beside it (the disk is full): failed
    };
    struct Cause {
        Kind kind;
        std::string reason;
    };
    Interrupt();                             // throws std::runtime_error where the system has no descriptors left
    void set(Kind kind, std::string reason); // the first cause stays
    void clear();
    std::optional<Cause> cause() const;
    int fd() const { return fd_.get(); } // readable while set

  private:
    mutable std::mutex mutex_;
    std::optional<Cause> cause_;
    UniqueFd fd_;
};

} // namespace perfrig
