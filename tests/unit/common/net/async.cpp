// Timeouts, task groups and the blocking pool.
#include "common/net/blocking_pool.hpp"
#include "tests/unit/common/net/net_support.hpp"

#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <future>
#include <thread>

using namespace perfrig;
using namespace perfrig::net_test;

namespace {

awaitable<Result<int>> answer_after(int milliseconds, int value, int* ended) {
    struct End {
        int* count;
        ~End() { ++*count; }
    } end{ended};
    co_await sleep_until(soon(milliseconds));
    co_return value;
}

} // namespace

TEST_CASE("a timeout passes a result on, or ends the operation before it says so") {
    boost::asio::io_context io;
    run(io, [&]() -> awaitable<void> {
        int ended = 0;
        const auto quick = co_await with_timeout(answer_after(1, 7, &ended), soon(), "ask", "it");
        REQUIRE(quick);
        CHECK(*quick == 7);
        const auto slow = co_await with_timeout(answer_after(60'000, 7, &ended), soon(30), "ask", "it");
        CHECK(ended == 2); // it does not run on behind our back
        REQUIRE_FALSE(slow);
        CHECK(slow.error().kind == ErrorKind::timed_out);
        CHECK(slow.error().text().find("ask it") != std::string::npos);
    });
}

TEST_CASE("the outer of two timeouts ends both, and exceptions come through") {
    boost::asio::io_context io;
    run(io, [&]() -> awaitable<void> {
        int ended = 0;
        auto inner = [](int* count) -> awaitable<Result<int>> {
            co_return co_await with_timeout(answer_after(60'000, 1, count), soon(50'000), "inner");
        };
        const auto outer = co_await with_timeout(inner(&ended), soon(30), "outer");
        REQUIRE_FALSE(outer);
        CHECK(outer.error().tried == "outer");
        CHECK(ended == 1);
        auto throwing = []() -> awaitable<Result<int>> {
            co_await sleep_until(soon(1));
            throw std::runtime_error("broken");
        };
        bool caught = false;
        try {
            co_await with_timeout(throwing(), soon(), "throw");
        } catch (const std::runtime_error&) {
            caught = true;
        }
        CHECK(caught);
    });
}

TEST_CASE("a task group cancels what it owns and waits for its end; a task that throws harms no other") {
    boost::asio::io_context io;
    run(io, [&]() -> awaitable<void> {
        TaskGroup group(io.get_executor());
        int ended = 0;
        auto forever = [](int* count) -> awaitable<void> { (void)co_await answer_after(3'600'000, 0, count); };
        auto broken = []() -> awaitable<void> {
            throw std::runtime_error("broken");
            co_return;
        };
        for (int i = 0; i < 3; ++i) group.spawn("forever", forever(&ended));
        group.spawn("broken", broken());
        CHECK_FALSE(co_await group.wait(soon(30)));
        CHECK(group.size() == 3);
        group.cancel();
        CHECK(co_await group.wait(soon()));
        CHECK(ended == 3);
    });
}

TEST_CASE("blocking work runs on a pool thread and its coroutine goes on at home") {
    boost::asio::io_context io;
    BlockingPool pool(2, 10);
    run(io, [&]() -> awaitable<void> {
        const auto home = std::this_thread::get_id();
        const auto there = co_await pool.run([]() -> Result<std::thread::id> { return std::this_thread::get_id(); });
        REQUIRE(there);
        CHECK(*there != home);
        CHECK(std::this_thread::get_id() == home);
        const auto failed =
            co_await pool.run([]() -> Result<int> { return fail(ErrorKind::conflict, "do", "", "it is taken"); });
        REQUIRE_FALSE(failed);
        CHECK(failed.error().kind == ErrorKind::conflict);
        bool caught = false;
        try {
            co_await pool.run([]() -> Result<void> { throw std::runtime_error("broken"); });
        } catch (const std::runtime_error& e) {
            caught = std::string(e.what()) == "broken";
        }
        CHECK(caught);
    });
}

TEST_CASE("what the work captured has ended when its coroutine goes on") {
    boost::asio::io_context io;
    BlockingPool pool(2, 10);
    run(io, [&]() -> awaitable<void> {
        for (int i = 0; i < 200; ++i) {
            auto token = std::make_shared<int>(i);
            const std::weak_ptr<int> watch = token;
            auto work = [token = std::move(token)]() -> Result<int> { return *token; };
            const auto out = co_await pool.run(work);
            CHECK(*out == i);
            CHECK(watch.expired());
        }
    });
}

TEST_CASE("a full queue refuses more work at once and the rest is done in order") {
    boost::asio::io_context io;
    BlockingPool pool(1, 5);
    std::promise<void> gate;
    const std::shared_future<void> opened = gate.get_future().share();
    std::vector<int> order; // touched by the one pool thread, read after all is done
    run(io, [&]() -> awaitable<void> {
        TaskGroup tasks(io.get_executor());
        int refused = 0, done = 0;
        auto job = [](BlockingPool* to, std::shared_future<void> gate_opened, int n, std::vector<int>* log, int* full,
                      int* good) -> awaitable<void> {
            auto work = [gate_opened, n, log]() -> Result<void> {
                gate_opened.wait();
                log->push_back(n);
                return {};
            };
            const auto out = co_await to->run(work);
            ++*(out ? good : full);
        };
        tasks.spawn("the first", job(&pool, opened, 0, &order, &refused, &done));
        co_await sleep_until(soon(1));
        while (pool.queued() > 0) co_await sleep_until(soon(1)); // the thread has taken it
        for (int i = 1; i <= 8; ++i) tasks.spawn("a job", job(&pool, opened, i, &order, &refused, &done));
        while (refused < 3) co_await sleep_until(soon(1));
        gate.set_value();
        CHECK(co_await tasks.wait(soon()));
        CHECK(refused == 3);
        CHECK(done == 6);
        CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5});
    });
}

TEST_CASE("a timeout around blocking work waits for the work and keeps its result") {
    boost::asio::io_context io;
    BlockingPool pool(1, 5);
    run(io, [&]() -> awaitable<void> {
        std::atomic<bool> ended = false;
        auto work = [](BlockingPool* to, std::atomic<bool>* flag) -> awaitable<Result<int>> {
            co_return co_await to->run([flag]() -> Result<int> {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                *flag = true;
                return 5;
            });
        };
        const auto out = co_await with_timeout(work(&pool, &ended), soon(10), "work");
        CHECK(ended);
        REQUIRE(out); // it was done: throwing it away would be a lie
        CHECK(*out == 5);
    });
}

TEST_CASE("a pool that goes away finishes what was queued") {
    std::atomic<int> done = 0;
    boost::asio::io_context io;
    {
        BlockingPool pool(2, 100);
        TaskGroup tasks(io.get_executor());
        auto job = [](BlockingPool* to, std::atomic<int>* count) -> awaitable<void> {
            (void)co_await to->run([count]() -> Result<void> {
                ++*count;
                return {};
            });
        };
        for (int i = 0; i < 50; ++i) tasks.spawn("a job", job(&pool, &done));
        io.poll();
        io.poll();
    }
    CHECK(done == 50);
    io.run_for(std::chrono::seconds(10)); // the coroutines end too
}
