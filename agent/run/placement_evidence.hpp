// What the kernel really gave: every thread's affinity, read back during measure, held against the grant. Pure.
#pragma once

#include "agent/collectors/threads.hpp"
#include "common/placement/placement.hpp"
#include "common/protocol/run_event.hpp"

#include <optional>
#include <string>
#include <vector>

namespace perfrig {

// Gathers the readings of one process over the whole of measure.
class PlacementEvidence {
  public:
    PlacementEvidence(std::string process, CpuList granted)
        : process_(std::move(process)), granted_(std::move(granted)) {}
    void add(const ThreadAffinity& thread);
    void looked(std::size_t readings) { readings_ += readings; } // and found everything as it was
    bool empty() const { return cpus_.empty(); }                 // no thread of it was ever read

    // What to record about it. `granted` empty: it wasn't pinned, nothing is judged.
    protocol::ProcessObserved observed(int ordinal) const;
    std::optional<protocol::Found> finding() const; // void: outside the grant, or nothing read; info: narrower

  private:
    std::string process_;
    CpuList granted_, cpus_, nodes_;
    std::size_t readings_ = 0, outside_ = 0;
    std::string first_outside_; // "thread 4711 (nginx) on 0-3"
};

} // namespace perfrig
