#include "tests/unit/agent/run/run_rig.hpp"

#include <condition_variable>

using namespace perfrig;
using perfrig::testing::RunRig;

namespace {

// What the worker says, to wait for.
class Words {
  public:
    void add(protocol::FromAgent word) {
        const std::lock_guard lock(mutex_);
        words_.push_back(std::move(word));
        changed_.notify_all();
    }
    template <class Word> bool wait_for(std::size_t count = 1) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return of<Word>() >= count; });
    }
    template <class Word> std::size_t of() const {
        return static_cast<std::size_t>(
            std::count_if(words_.begin(), words_.end(), [](const auto& w) { return std::holds_alternative<Word>(w); }));
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<protocol::FromAgent> words_;
};

struct WorkerRig : RunRig {
    Words words;
    std::unique_ptr<BlockWorker> worker;
    std::string file() const { return folder + "/block.json"; }
    void start() {
        worker = BlockWorker::open(machine, file(), status).value();
        REQUIRE(worker->start([this](protocol::FromAgent word) { words.add(std::move(word)); }, [](std::string) {}));
    }
    protocol::PrepareBlock block(std::vector<std::int64_t> runs, const ResolvedRun& run) const {
        protocol::PrepareBlock message{3, 7, {}};
        for (const std::int64_t id : runs) message.runs.push_back({id, 1, to_json(run)});
        return message;
    }
    ~WorkerRig() { worker.reset(); }
};

bool eventually(const std::function<bool()>& condition) {
    for (const Deadline deadline = Deadline::in(Milliseconds(20'000)); !deadline.passed(); ::usleep(5'000))
        if (condition()) return true;
    return false;
}

} // namespace

TEST_CASE("a block is worked to its end without another word from the controller, then released at its word") {
    WorkerRig rig;
    rig.start();
    ResolvedRun refused = rig.run();
    refused.tools[0].role = "nobody has it";
    protocol::PrepareBlock block = rig.block({11, 12}, rig.run());
    block.runs.push_back({13, 1, to_json(refused)});
    rig.worker->give(block);
    CHECK(rig.words.wait_for<protocol::BlockReady>());
    CHECK(rig.words.wait_for<protocol::BlockWorked>());
    CHECK(rig.sink.states(11).ends_with("completed"));
    CHECK(rig.sink.states(12).ends_with("completed"));
    CHECK(rig.sink.states(13) == "refused"); // a bad run refuses itself alone
    CHECK(rig.worker->standing().worked);
    rig.worker->give(protocol::EndBlock{3, 7});
    CHECK(rig.words.wait_for<protocol::BlockReleased>());
    CHECK(rig.worker->standing().block == 0);
    CHECK(rig.worker->standing().highest_token == 7);
}

TEST_CASE("a run that was open when the agent died is interrupted at the next start, and the block goes on behind it") {
    WorkerRig rig;
    BlockState state; // as a killed agent leaves it
    state.prepare(rig.block({11, 12}, rig.run()));
    state.run_opened(11);
    REQUIRE(save_block_state(rig.file(), state));
    rig.start();
    CHECK(rig.words.wait_for<protocol::BlockWorked>());
    CHECK(rig.sink.states(11) == "interrupted");
    CHECK(rig.sink.end_reason(11).find("restarted") != std::string::npos);
    CHECK(rig.sink.states(12).ends_with("completed"));
    CHECK(rig.sink.events().front().run == 11); // before anything new
}

TEST_CASE("stop interrupts the run under way and keeps the block for the next start") {
    WorkerRig rig;
    rig.start();
    ResolvedRun slow = rig.run();
    slow.pause_ms = 60'000;
    rig.worker->give(rig.block({11, 12}, slow));
    REQUIRE(eventually([&] { return rig.sink.states(11).ends_with("warming"); }));
    rig.worker->stop("the agent was stopped");
    CHECK(rig.sink.states(11).ends_with("interrupted"));
    CHECK(rig.sink.states(12).empty());
    CHECK(load_block_state(rig.file()).value().next_waiting()->run == 12);
    CHECK(rig.nothing_left());
}

TEST_CASE("a cancel of the whole block cancels the run under way and those that wait") {
    WorkerRig rig;
    rig.start();
    ResolvedRun slow = rig.run();
    slow.pause_ms = 60'000;
    rig.worker->give(rig.block({11, 12}, slow));
    REQUIRE(eventually([&] { return rig.sink.states(11).ends_with("warming"); }));
    rig.worker->give(protocol::CancelRun{3, 6, 0, "a stale one"}); // out of date: changes nothing
    rig.worker->give(protocol::CancelRun{3, 7, 0, "enough"});
    CHECK(rig.words.wait_for<protocol::BlockWorked>());
    CHECK(rig.sink.states(11).ends_with("cancelled"));
    CHECK(rig.sink.states(12) == "cancelled");
    CHECK(rig.sink.end_reason(12) == "enough");
}

TEST_CASE("a retry that is assigned later is worked, and the block is said to be worked again") {
    WorkerRig rig;
    rig.start();
    rig.worker->give(rig.block({11}, rig.run()));
    CHECK(rig.words.wait_for<protocol::BlockWorked>());
    rig.worker->give(protocol::AssignRun{3, 7, {21, 2, to_json(rig.run())}});
    CHECK(rig.words.wait_for<protocol::BlockWorked>(2));
    CHECK(rig.sink.states(21).ends_with("completed"));
}

TEST_CASE("a lease that went to another block ends the run and gives the block up") {
    WorkerRig rig;
    rig.start();
    ResolvedRun slow = rig.run();
    slow.pause_ms = 60'000;
    rig.worker->give(rig.block({11, 12}, slow));
    REQUIRE(eventually([&] { return rig.sink.states(11).ends_with("warming"); }));
    rig.worker->lease_is(3); // still ours: nothing happens
    rig.worker->lease_is(0);
    CHECK(eventually([&] { return rig.worker->standing().block == 0; }));
    CHECK(rig.sink.states(11).ends_with("interrupted"));
    CHECK(rig.sink.states(12).empty());
}
