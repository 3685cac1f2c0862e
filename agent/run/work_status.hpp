// What the agent is doing, for heartbeats and /metrics: written by the worker, read by anyone.
#pragma once

#include "common/base/clock.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace perfrig {

class WorkStatus {
  public:
    struct View {
        std::int64_t run = 0; // 0: none
        int attempt = 0;
        std::string experiment;
        std::string state = "idle"; // of the run: preparing, measuring ...
        bool measuring = false;
        std::uint64_t measuring_since_seq = 0; // the spool's last record when measure began
        std::optional<Deadline> until;         // of the phase, where it is known
    };
    // What keeps this machine from measuring, until it is set to "": stays over runs.
    void set_dirty(std::string why) {
        const std::lock_guard lock(mutex_);
        dirty_ = std::move(why);
    }
    void set(View view) {
        const std::lock_guard lock(mutex_);
        view_ = std::move(view);
    }
    template <class Change> void change(Change change) {
        const std::lock_guard lock(mutex_);
        change(view_);
    }
    View view() const {
        const std::lock_guard lock(mutex_);
        return view_;
    }
    std::string doing() const; // "measuring run 12, 14 s left", "not clean: process 12 is still there"

  private:
    mutable std::mutex mutex_;
    View view_;
    std::string dirty_;
};

} // namespace perfrig
