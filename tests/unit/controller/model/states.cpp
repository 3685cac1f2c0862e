#include "controller/model/submission.hpp"
#include "tests/support/doctest.hpp"

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
