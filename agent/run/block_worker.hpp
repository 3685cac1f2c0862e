// Works blocks on a thread of its own: takes what the controller says (from the link's thread, through a queue), works
// the runs in order without needing the controller any further, and says what it did. Every step is on disk before it
// is taken (block.json), so a restart resumes the block: a run that was open is ended as interrupted, the next one is
// worked. Where a run left processes that nobody could end, nothing is measured beside them: the runs that wait are
// ended as interrupted and blocks are refused, each time after one more try to end what is left.
#pragma once

#include "agent/run/block_state.hpp"
#include "agent/run/execution.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <variant>

namespace perfrig {

// For the link: hello, heartbeats, and what must be said again after a reconnect.
struct BlockStanding {
    std::int64_t block = 0, token = 0, highest_token = 0;
    std::int64_t open_run = 0;
    bool worked = false;
};

class BlockWorker {
  public:
    using Say = std::function<void(protocol::FromAgent)>; // from the worker's thread; must not block
    // Reads `block_file`. The machine must outlive the worker.
    static Result<std::unique_ptr<BlockWorker>> open(const RunMachine& machine, std::string block_file,
                                                     WorkStatus& status);
    ~BlockWorker();

    // Ends what earlier starts of this agent left, records the open run's interruption, and begins to work. `say` gets
    // the answers; `broken` is called once when nothing can be worked any more (the helper is gone, the state can't be
    // written).
    Result<void> start(Say say, std::function<void(std::string why)> broken);

    void give(protocol::PrepareBlock message);
    void give(protocol::AssignRun message);
    void give(protocol::CancelRun message); // the run under way ends within seconds
    void give(protocol::EndBlock message);
    // The controller's welcome: the block that is still ours. Any other is given up.
    void lease_is(std::int64_t block);

    // Interrupts the run under way, waits until it has ended and is recorded, ends the thread.
    void stop(std::string reason);
    BlockStanding standing() const;

  private:
    struct Lease {
        std::int64_t block = 0;
    };
    struct Dirt {             // what could not be ended
        std::int64_t run = 0; // that left it; 0: runs of an earlier start
        std::string why;
        std::string text() const;
    };
    using Order =
        std::variant<protocol::PrepareBlock, protocol::AssignRun, protocol::CancelRun, protocol::EndBlock, Lease>;

    BlockWorker(const RunMachine& machine, std::string block_file, WorkStatus& status, BlockState state);
    void work();
    void enqueue(Order order);
    void obey(const protocol::PrepareBlock& order);
    void obey(const protocol::AssignRun& order);
    void obey(const protocol::CancelRun& order);
    void obey(const protocol::EndBlock& order);
    void obey(const Lease& order);
    void run_next();
    void soil(Dirt dirt);
    bool clean(); // ends what was left, where something was
    void end_waiting_run(const BlockRun& run, const std::string& state, const std::string& reason);
    Result<void> recover();
    bool save(); // false: reported as broken
    void break_down(std::string why);

    const RunMachine& machine_;
    const std::string block_file_;
    WorkStatus& status_;
    Say say_;
    std::function<void(std::string)> broken_;
    Interrupt interrupt_;      // of the run under way
    std::optional<Dirt> dirt_; // of the worker's thread alone, once it is started

    mutable std::mutex mutex_; // guards what follows
    std::condition_variable changed_;
    BlockState state_; // changed by the worker's thread alone
    std::deque<Order> orders_;
    bool stop_ = false, broke_ = false;
    bool said_worked_ = false;
    std::thread thread_;
};

} // namespace perfrig
