#include "controller/model/submission.hpp"
#include "tests/support/doctest.hpp"

#include <set>

using namespace perfrig;
using namespace perfrig::model;

TEST_CASE("every state has its own word and is read back from it") {
    for (int i = 0; i <= int(RunState::interrupted); ++i)
        CHECK(parse_run_state(to_string(RunState(i))).value() == RunState(i));
    for (int i = 0; i <= int(MachineState::quarantined); ++i)
        CHECK(parse_machine_state(to_string(MachineState(i))).value() == MachineState(i));
    for (int i = 0; i <= int(BlockState::cancelled); ++i)
        CHECK(parse_block_state(to_string(BlockState(i))).value() == BlockState(i));
    CHECK(to_string(Verdict::void_) == "void");
    CHECK(parse_severity("void").value() == Severity::void_);
}

TEST_CASE("another word is refused and the known ones are named") {
    const auto refused = parse_run_state("Completed");
    REQUIRE(!refused);
    CHECK(refused.error().kind == ErrorKind::bad_input);
    CHECK(refused.error().remedy.find("completed") != std::string::npos);
}

TEST_CASE("end states are those that never change again") {
    CHECK(!is_end(RunState::uploading));
    for (const RunState state :
         {RunState::completed, RunState::refused, RunState::failed, RunState::cancelled, RunState::interrupted})
        CHECK(is_end(state));
    CHECK(!is_end(SubmissionState::running));
    CHECK(is_end(SubmissionState::cancelled));
    CHECK(!is_end(BlockState::releasing));
    CHECK(is_end(BlockState::refused));
}

TEST_CASE("counts know how many runs there are and how many have ended") {
    RunCounts counts;
    counts.by_state = {{RunState::planned, 3}, {RunState::completed, 2}, {RunState::failed, 1}};
    CHECK(counts.total() == 6);
    CHECK(counts.ended() == 3);
}

namespace {
constexpr RunState all_run_states[] = {RunState::planned,   RunState::assigned,  RunState::preparing,
                                       RunState::warming,   RunState::measuring, RunState::stopping,
                                       RunState::uploading, RunState::completed, RunState::refused,
                                       RunState::failed,    RunState::cancelled, RunState::interrupted};

std::set<std::string> followers(RunState from) {
    std::set<std::string> out;
    for (const RunState to : all_run_states)
        if (may_follow(from, to)) out.insert(std::string(to_string(to)));
    return out;
}
} // namespace

TEST_CASE("every state of a run is followed by these and no others") {
    using Set = std::set<std::string>;
    CHECK(followers(RunState::planned) == Set{"assigned", "refused", "failed", "cancelled"});
    CHECK(followers(RunState::assigned) == Set{"planned", "preparing", "warming", "measuring", "stopping", "uploading",
                                               "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::preparing) == Set{"warming", "measuring", "stopping", "uploading", "completed", "refused",
                                                "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::warming) ==
          Set{"measuring", "stopping", "uploading", "completed", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::measuring) ==
          Set{"stopping", "uploading", "completed", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::stopping) ==
          Set{"uploading", "completed", "refused", "failed", "cancelled", "interrupted"});
    CHECK(followers(RunState::uploading) == Set{"completed", "refused", "failed", "cancelled", "interrupted"});
    for (const RunState end :
         {RunState::completed, RunState::refused, RunState::failed, RunState::cancelled, RunState::interrupted})
        CHECK_MESSAGE(followers(end).empty(), to_string(end));
}

TEST_CASE("every state that the agent must bring to an end in time has a longest stay, and no other has") {
    for (const RunState state : all_run_states)
        CHECK_MESSAGE(longest_stay(state).has_value() == (!is_end(state) && state != RunState::planned),
                      to_string(state));
}
