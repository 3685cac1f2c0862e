#include "tests/integration/db/scratch.hpp"

#include "common/base/hash.hpp"

#include <cstdlib>

namespace perfrig::test {

namespace {
std::string server() {
    const char* target = std::getenv("PERFRIG_TEST_DATABASE");
    if (!target) throw std::runtime_error("set PERFRIG_TEST_DATABASE to the connection string of a server");
    return target;
}
std::unique_ptr<db::Connection> open(const std::string& target) {
    db::ConnectionOptions options;
    options.target = target;
    return good(db::Connection::open(options));
}
} // namespace

Scratch::Scratch(bool migrated) : name_("perfrig_test_" + random_hex(6)), target_(server() + " dbname=" + name_) {
    good(open(server())->exec(("create database " + name_).c_str()));
    connection_ = connect();
    if (migrated) good(db::migrate(*connection_));
}

Scratch::~Scratch() {
    connection_.reset();
    good(open(server())->exec(("drop database " + name_ + " with (force)").c_str()));
}

std::unique_ptr<db::Connection> Scratch::connect() { return open(target_); }

db::PoolOptions Scratch::pool_options(std::size_t size) const {
    db::PoolOptions out;
    out.connection.target = target_;
    out.size = size;
    return out;
}

model::Machine idle_machine(db::Connection& c, const std::string& name, const Json& labels) {
    const model::Machine made = good(db::machines::enrol(c, name, labels));
    good(db::machines::change_state(c, made.id, {}, model::MachineState::idle, "", "test"));
    return good(db::machines::find(c, name));
}

model::NewSubmission submission(int cells, int replicates) {
    model::NewSubmission out;
    out.experiment = "fruits/scaling";
    out.source = "test";
    out.definition = "perfrig: 1\n";
    out.definition_sha = sha256_hex(out.definition);
    out.blocks = {Json::object()};
    int position = 0;
    for (int cell = 0; cell < cells; ++cell) {
        out.cells.push_back({"key-" + std::to_string(cell), {{"connections", std::to_string(cell)}}});
        for (int replicate = 1; replicate <= replicates; ++replicate)
            out.runs.push_back({std::size_t(cell), 0, position++, replicate, {{"measure_ms", 1000}}, "sha"});
    }
    return out;
}

Rig rig(db::Connection& c, int runs, const std::string& name) {
    Rig out;
    out.machine = idle_machine(c, name);
    model::NewSubmission wanted = submission(runs);
    wanted.machine_name = name;
    out.submission = good(db::submissions::create(c, wanted));
    auto granted = good(db::queue::grant_next(c, out.machine.id, Milliseconds(15'000), Milliseconds(60'000)));
    REQUIRE(granted);
    out.granted = std::move(*granted);
    return out;
}

protocol::SpoolRecord event_record(std::uint64_t seq, model::Id run, protocol::RunEventBody body) {
    protocol::RunEvent event;
    event.run = run;
    event.block = 1;
    event.time_ns = 1'000;
    event.body = std::move(body);
    return {protocol::RecordKind::run_event, seq, protocol::encode(event)};
}

protocol::SpoolRecord frame_record(std::uint64_t seq, const protocol::SampleFrame& frame) {
    return {protocol::RecordKind::samples, seq, protocol::encode_samples(frame)};
}

protocol::StateChanged state(const std::string& word, const std::string& reason) {
    protocol::StateChanged out;
    out.state = word;
    out.reason = reason;
    return out;
}

protocol::SeriesDeclared series(std::uint32_t id, const std::string& name, std::map<std::string, std::string> labels) {
    return {id, name, "s", "counter", std::move(labels)};
}

std::int64_t count(db::Connection& c, const std::string& sql) { return good(c.exec(sql.c_str())).integer(0, 0); }

} // namespace perfrig::test
