// The run's state machine as a table: what may follow what, and who must act.
#include "controller/queue/run_state.hpp"

#include "tests/support/doctest.hpp"

#include <set>
#include <string>

using namespace perfrig;
using namespace perfrig::queue;
using model::RunState;

namespace {

constexpr RunState all[] = {RunState::planned,   RunState::assigned, RunState::preparing, RunState::warming,
                            RunState::measuring, RunState::stopping, RunState::uploading, RunState::completed,
                            RunState::refused,   RunState::failed,   RunState::cancelled, RunState::interrupted};

std::set<std::string> followers(RunState from) {
    std::set<std::string> out;
    for (const auto to : all)
        if (may_follow(from, to)) out.insert(std::string(model::to_string(to)));
    return out;
}

} // namespace

TEST_CASE("every state of a run is followed by these and no others") {
    using Set = std::set<std::string>;
    CHECK(followers(RunState::planned) == Set{"assigned", "refused", "failed", "cancelled"});
    CHECK(followers(RunState::assigned) ==
          Set{"planned", "preparing", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::preparing) ==
          Set{"warming", "measuring", "stopping", "uploading", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::warming) ==
          Set{"measuring", "stopping", "uploading", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::measuring) ==
          Set{"stopping", "uploading", "completed", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::stopping) ==
          Set{"uploading", "completed", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::uploading) == Set{"completed", "refused", "failed", "cancelled", "interrupted"});
    for (const auto end :
         {RunState::completed, RunState::refused, RunState::failed, RunState::cancelled, RunState::interrupted})
        CHECK_MESSAGE(followers(end).empty(), model::to_string(end));
}

TEST_CASE("every state that is no end has an owner, and every state of the agent a deadline") {
    for (const auto state : all) {
        CHECK((owner_of(state) == RunOwner::nobody) == model::is_end(state));
        CHECK_MESSAGE(longest_stay(state).has_value() == (owner_of(state) == RunOwner::agent), model::to_string(state));
        if (!model::is_end(state)) CHECK_MESSAGE(!followers(state).empty(), model::to_string(state));
    }
}

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
