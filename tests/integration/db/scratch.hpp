// A database of a test's own, migrated, dropped when the test ends; and what most tests need in it.
#pragma once

#include "common/protocol/run_event.hpp"
#include "common/protocol/sample_frame.hpp"
#include "common/protocol/spool_record.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/migrate.hpp"
#include "controller/db/pool.hpp"
#include "controller/db/queue.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/submissions.hpp"
#include "tests/support/doctest.hpp"

#include <memory>
#include <string>

namespace perfrig::test {

class Scratch {
  public:
    explicit Scratch(bool migrated = true);
    ~Scratch();
    std::unique_ptr<db::Connection> connect();
    db::Connection& c() { return *connection_; }
    db::PoolOptions pool_options(std::size_t size = 4) const;
    std::string target() const { return target_; }

  private:
    std::string name_, target_;
    std::unique_ptr<db::Connection> connection_;
};

// value() that says what went wrong.
template <class T> T good(Result<T> result) {
    if (!result) FAIL(result.error().text());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

model::Machine idle_machine(db::Connection& c, const std::string& name, const Json& labels = Json::object());
// `cells` cells of `replicates` runs each, all in one block.
model::NewSubmission submission(int cells, int replicates = 1);
// A machine with a block of `runs` runs granted to it.
struct Rig {
    model::Machine machine;
    db::submissions::Created submission;
    db::queue::Granted granted;
    model::Id run(std::size_t i = 0) const { return granted.runs.at(i).id; }
};
Rig rig(db::Connection& c, int runs = 1, const std::string& name = "ryzen");

protocol::SpoolRecord event_record(std::uint64_t seq, model::Id run, protocol::RunEventBody body);
protocol::SpoolRecord frame_record(std::uint64_t seq, const protocol::SampleFrame& frame);
protocol::StateChanged state(const std::string& word, const std::string& reason = "");
protocol::SeriesDeclared series(std::uint32_t id, const std::string& name = "cpu_user_seconds",
                                std::map<std::string, std::string> labels = {});

std::int64_t count(db::Connection& c, const std::string& sql); // the one number it returns

} // namespace perfrig::test
