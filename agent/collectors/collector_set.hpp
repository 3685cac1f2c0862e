// All collectors of an agent behind one call a second. Owns them, and the live picture that /metrics shows.
//
// tick(), watch(), unwatch(), take_affinity_news() and snapshot() may be called from different threads: one mutex, held
// for the few milliseconds of a tick.
#pragma once

#include "agent/collectors/collector.hpp"
#include "agent/collectors/snapshot.hpp"
#include "agent/collectors/threads.hpp"
#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/unique_fd.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace perfrig {

class CollectorSet {
  public:
    // CPUs, memory, frequency and throttling, own overhead, and threads of what is watched. `counts`: the socket of a
    // reader of thread counts, where one can be had: else switches are read from files.
    CollectorSet(FileTree tree, const Clock& clock, UniqueFd counts = {});
    ~CollectorSet();

    void watch(WatchedProcess process);       // from the next tick on; the same name again replaces it
    void unwatch(const std::string& process); // its series end with the next tick

    Tick tick(); // reads everything now

    AffinityNews take_affinity_news(); // of all ticks since the last call
    ProcessSnapshot snapshot() const;  // built from the last ticks; reads nothing

    // Series begin anew: the next tick announces every live series again under new ids. For each run its own ids.
    void restart_series();

  private:
    struct State;
    mutable std::mutex mutex_;
    std::unique_ptr<State> state_;
};

} // namespace perfrig
