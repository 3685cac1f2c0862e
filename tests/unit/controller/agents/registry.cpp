// Who is connected: one session a machine, and messages go to the session they were meant for.
#include "controller/agents/registry.hpp"

#include "controller/agents/ingest_counts.hpp"
#include "tests/support/doctest.hpp"

#include <boost/asio/io_context.hpp>
#include <numeric>

using namespace perfrig;
using namespace perfrig::agents;

namespace {

struct Fixture {
    boost::asio::io_context io;
    Registry registry;
    std::vector<std::string> cut;

    std::shared_ptr<AgentHandle> connect(model::Id machine, std::string session) {
        auto handle = std::make_shared<AgentHandle>(io.get_executor());
        handle->machine = machine;
        handle->name = "xeon";
        handle->session = session;
        handle->token_hash = "hash-" + session;
        handle->cut = [this, session](const std::string&) { cut.push_back(session); };
        registry.add(handle);
        return handle;
    }
};

} // namespace

TEST_CASE("a second hello of a machine cuts the older session, whose end does not remove the newer one") {
    Fixture f;
    const auto older = f.connect(1, "a");
    const auto newer = f.connect(1, "b");
    CHECK(f.cut == std::vector<std::string>{"a"});
    f.registry.remove(older);
    CHECK(f.registry.find(1) == newer);
    f.registry.remove(newer);
    CHECK(f.registry.size() == 0);
}

TEST_CASE("a message meant for an older session is not given to the newer one") {
    Fixture f;
    const auto agent = f.connect(1, "b");
    f.registry.send({1, "a", protocol::EndBlock{7, 40}});
    f.registry.send({2, "b", protocol::EndBlock{7, 40}});
    CHECK(agent->outbox.empty());
    f.registry.send({1, "b", protocol::EndBlock{7, 40}});
    CHECK(agent->outbox.size() == 1);
}

TEST_CASE("the link of a token that is revoked is cut, and no other") {
    Fixture f;
    f.connect(1, "a");
    f.connect(2, "b");
    f.registry.cut_token("hash-b", "revoked");
    CHECK(f.cut == std::vector<std::string>{"b"});
    f.registry.cut_machine("nobody", "forgotten");
    CHECK(f.cut.size() == 1);
    f.registry.cut_machine("xeon", "forgotten"); // both are called so here
    CHECK(f.cut == std::vector<std::string>{"b", "a", "b"});
}

TEST_CASE("an agent that gets another run has not worked its block any more") {
    Fixture f;
    const auto agent = f.connect(1, "a");
    agent->worked_token = 40;
    f.registry.send({1, "a", protocol::CancelRun{7, 40, 0, ""}});
    CHECK(f.registry.connected().at(0).worked_token == 40);
    f.registry.send({1, "a", protocol::AssignRun{7, 40, {}}});
    CHECK(f.registry.connected().at(0).worked_token == 0);
}

TEST_CASE("an agent that takes nothing in is cut off, and its outbox stays bounded") {
    Fixture f;
    const auto agent = f.connect(1, "a");
    for (std::size_t i = 0; i < most_outgoing; ++i) f.registry.send({1, "a", protocol::EndBlock{7, 40}});
    CHECK(f.cut.empty());
    f.registry.send({1, "a", protocol::EndBlock{7, 40}});
    CHECK(f.cut == std::vector<std::string>{"a"});
    CHECK(agent->outbox.size() == most_outgoing);
}

TEST_CASE("every batch's time to commit falls into one bucket") {
    IngestCounts counts;
    for (const double seconds : {0.0, 0.002, 0.0021, 0.3, 5.0, 100.0}) counts.add_latency(seconds);
    CHECK(counts.latency[0] == 2);
    CHECK(counts.latency[1] == 1);
    CHECK(counts.latency.back() == 1);
    CHECK(std::accumulate(counts.latency.begin(), counts.latency.end(), std::int64_t{0}) == 6);
}
