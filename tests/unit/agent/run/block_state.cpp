#include "agent/run/block_state.hpp"

#include "tests/support/doctest.hpp"

#include <random>

using namespace perfrig;

namespace {

protocol::PrepareBlock block_of(std::int64_t block, std::int64_t token, std::vector<std::int64_t> runs) {
    protocol::PrepareBlock message{block, token, {}};
    for (const std::int64_t run : runs) message.runs.push_back({run, 1, Json{{"run", run}}});
    return message;
}

BlockState restarted(const BlockState& state) { return BlockState::from_json(state.to_json()).value(); }

} // namespace

TEST_CASE("a block is worked run by run, in order, and is worked when every run has ended") {
    BlockState state;
    CHECK(state.prepare(block_of(4, 10, {101, 102})).answer == BlockAnswer::taken);
    CHECK_FALSE(state.worked());
    for (const std::int64_t run : {101, 102}) {
        REQUIRE(state.next_waiting());
        CHECK(state.next_waiting()->run == run);
        state.run_opened(run);
        CHECK(state.open_run()->run == run);
        state.run_ended(run, "completed");
    }
    CHECK(state.worked());
    CHECK(state.end({4, 10}).answer == BlockAnswer::taken);
    CHECK(state.block() == 0);
    CHECK_FALSE(state.worked());
}

TEST_CASE("after a restart the block is resumed and the open run is known, at every step") {
    BlockState state;
    state.prepare(block_of(4, 10, {101, 102}));
    CHECK(restarted(state).next_waiting()->resolved == Json{{"run", 101}});
    state.run_opened(101);
    state = restarted(state);
    REQUIRE(state.open_run());
    CHECK(state.open_run()->run == 101);
    state.run_ended(101, "interrupted");
    state = restarted(state);
    CHECK_FALSE(state.open_run());
    CHECK(state.next_waiting()->run == 102); // the next run, never the same again
    CHECK(state.highest_token() == 10);
    CHECK(state.token() == 10);
}

TEST_CASE("a token that is out of date is refused, and the highest outlives block and restart") {
    BlockState state;
    state.prepare(block_of(4, 10, {101}));
    state.run_opened(101);
    state.run_ended(101, "completed");
    state.end({4, 10});
    state = restarted(state);
    CHECK(state.highest_token() == 10);
    CHECK(state.prepare(block_of(5, 9, {1})).answer == BlockAnswer::refused);
    CHECK(state.prepare(block_of(5, 9, {1})).reason.find("9") != std::string::npos);
    CHECK(state.prepare(block_of(5, 11, {1})).answer == BlockAnswer::taken);
    CHECK(state.check(5, 10).answer == BlockAnswer::refused);
    CHECK(state.check(4, 11).answer == BlockAnswer::refused);
    CHECK(state.check(5, 11).answer == BlockAnswer::taken);
}

TEST_CASE("messages that come twice are answered again and change nothing") {
    BlockState state;
    CHECK(state.prepare(block_of(4, 10, {101, 102})).answer == BlockAnswer::taken);
    state.run_opened(101);
    CHECK(state.prepare(block_of(4, 10, {101, 102})).answer == BlockAnswer::repeated);
    CHECK(state.open_run()->run == 101);
    CHECK(state.assign({4, 10, {103, 2, {}}}).answer == BlockAnswer::taken);
    CHECK(state.assign({4, 10, {103, 2, {}}}).answer == BlockAnswer::repeated);
    CHECK(state.runs().size() == 3);
    for (const std::int64_t run : {101, 102, 103}) state.run_ended(run, "completed");
    CHECK(state.end({4, 10}).answer == BlockAnswer::taken);
    CHECK(state.end({4, 10}).answer == BlockAnswer::repeated);
    CHECK(restarted(state).end({4, 10}).answer == BlockAnswer::repeated);
}

TEST_CASE("a second block is refused while one is in hand") {
    BlockState state;
    state.prepare(block_of(4, 10, {101}));
    CHECK(state.prepare(block_of(5, 11, {1})).answer == BlockAnswer::refused);
    CHECK(state.block() == 4);
}

TEST_CASE("a retry is worked next, and a worked block is no longer worked then") {
    BlockState state;
    state.prepare(block_of(4, 10, {101, 102, 103}));
    state.run_opened(101);
    state.run_ended(101, "interrupted");
    CHECK(state.assign({4, 10, {201, 2, {}}}).answer == BlockAnswer::taken);
    CHECK(state.next_waiting()->run == 201);
    for (const std::int64_t run : {201, 102, 103}) state.run_ended(run, "completed");
    CHECK(state.worked());
    CHECK(state.assign({4, 10, {202, 2, {}}}).answer == BlockAnswer::taken);
    CHECK_FALSE(state.worked());
    CHECK(state.assign({4, 9, {203, 2, {}}}).answer == BlockAnswer::refused);
}

TEST_CASE("a lease that is gone gives the block up, and its end is then refused") {
    BlockState state;
    state.prepare(block_of(4, 10, {101}));
    state.give_up();
    CHECK(state.block() == 0);
    CHECK(state.highest_token() == 10);
    CHECK(state.end({4, 10}).answer == BlockAnswer::refused);
}

TEST_CASE("whatever comes in whatever order, at most one run is open and the highest token never falls") {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        BlockState state;
        std::int64_t highest = 0;
        for (int step = 0; step < 60; ++step) {
            const auto token = static_cast<std::int64_t>(random() % 6 + 1);
            const auto block = static_cast<std::int64_t>(random() % 3 + 1);
            switch (random() % 7) {
            case 0: state.prepare(block_of(block, token, {block * 10, block * 10 + 1})); break;
            case 1: state.assign({block, token, {static_cast<std::int64_t>(random() % 40), 2, {}}}); break;
            case 2: state.end({block, token}); break;
            case 3: state.give_up(); break;
            case 4:
                if (!state.open_run() && state.next_waiting()) state.run_opened(state.next_waiting()->run);
                break;
            case 5:
                if (const BlockRun* open = state.open_run()) state.run_ended(open->run, "completed");
                break;
            default: state = restarted(state);
            }
            CHECK(state.highest_token() >= highest);
            highest = state.highest_token();
            int open = 0;
            for (const BlockRun& run : state.runs()) open += run.state == BlockRun::State::open;
            CHECK(open <= 1);
            if (state.block() == 0) CHECK(state.runs().empty());
        }
    }
}

TEST_CASE("a state file of another shape is an error, not a fresh start") {
    CHECK_FALSE(BlockState::from_json(Json::object()));
    CHECK_FALSE(BlockState::from_json(Json{{"version", 2}}));
    Json broken = BlockState().to_json();
    broken["runs"] = Json::array({Json{{"run", 1}}});
    CHECK_FALSE(BlockState::from_json(broken));
}
