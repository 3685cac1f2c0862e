// Runs that are late or were interrupted: what is done about them.
#include "controller/queue/run_state.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace perfrig::queue;
using model::RunState;

namespace {

constexpr RunState all[] = {RunState::planned,   RunState::assigned, RunState::preparing, RunState::warming,
                            RunState::measuring, RunState::stopping, RunState::uploading, RunState::completed,
                            RunState::refused,   RunState::failed,   RunState::cancelled, RunState::interrupted};

} // namespace

TEST_CASE("a run beyond its deadline is first cancelled at its agent, and called failed when that does not help") {
    using Time = Milliseconds;
    CHECK(decide_overdue(Time{0}, std::nullopt) == OverdueStep::wait);
    CHECK(decide_overdue(deadline_margin - Time{1}, std::nullopt) == OverdueStep::wait);
    CHECK(decide_overdue(deadline_margin, std::nullopt) == OverdueStep::cancel_at_agent);
    CHECK(decide_overdue(deadline_margin * 2, Time{0}) == OverdueStep::wait);
    CHECK(decide_overdue(deadline_margin * 2, cancel_grace - Time{1}) == OverdueStep::wait);
    CHECK(decide_overdue(deadline_margin * 2, cancel_grace) == OverdueStep::fail);
}

TEST_CASE("only interrupted runs are retried, at most twice, and never in a submission that is to be cancelled") {
    for (const auto state : all) CHECK(retry_is_due(state, 1, false) == (state == RunState::interrupted));
    CHECK(retry_is_due(RunState::interrupted, 2, false));
    CHECK(!retry_is_due(RunState::interrupted, 3, false));
    CHECK(!retry_is_due(RunState::interrupted, 1, true));
}
