// What stands between a submission and its start, as values: the machines that there are and the queue before it.
#pragma once

#include "controller/model/submission.hpp"

#include <optional>
#include <string>
#include <vector>

namespace perfrig::model {

// A machine as a waiting submission sees it.
struct MachineInSight {
    std::string name;
    bool suits = false;                     // by the name or the labels that were asked for
    std::vector<std::string> lacking_roles; // that the experiment names and its profile has not
    MachineState state = MachineState::idle;
    MachineState previous_state = MachineState::idle; // of an unreachable one
    std::string reason;
    std::string held_by; // who held it last; counts where it is held or draining
    std::optional<std::int64_t> last_seen_utc_ns;
    Id busy_with = 0;                        // the submission whose block has its lease
    std::optional<double> busy_seconds_left; // of that block, by its plan
};

struct WaitingView {
    Id submission = 0;
    bool pending = false; // a block of it waits, and it is not to be cancelled
    std::optional<std::string> machine_name;
    std::map<std::string, std::string> machine_labels;
    std::int64_t blocks_ahead = 0; // that come first for a machine that suits it
    std::vector<MachineInSight> machines;
};

} // namespace perfrig::model
