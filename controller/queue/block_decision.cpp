#include "controller/queue/block_decision.hpp"

namespace perfrig::queue {

BlockStep decide_block(const BlockView& view) {
    if (view.open_runs > 0) {
        if (view.cancel_requested && !view.told_to_cancel && view.lease != model::LeaseState::releasing)
            return BlockStep::cancel_runs;
        return BlockStep::none;
    }
    if (view.told_to_end) return BlockStep::none;
    if (view.missing_artifacts > 0 && view.all_ended_for < artifact_patience) return BlockStep::none;
    return view.worked || view.all_ended_for >= worked_patience ? BlockStep::end_block : BlockStep::none;
}

} // namespace perfrig::queue
