// The reader of thread counts: what it can do, what it can't, and how long it lives.
#include "common/process/thread_counts_channel.hpp"
#include "tests/unit/agent/helper/support.hpp"

using namespace perfrig;
using namespace perfrig::test;

namespace {

std::string status_line(pid_t pid, const std::string& field) {
    const auto text = FileTree().read("/proc/" + std::to_string(pid) + "/status");
    if (!text) return "";
    const auto at = text->find("\n" + field + ":\t");
    return at == std::string::npos
               ? ""
               : text->substr(at + field.size() + 3, text->find('\n', at + 1) - at - field.size() - 3);
}

// Nothing where this machine can't.
std::optional<ThreadCountsClient> open(HelperClient& helper, const CpuList& cpus = {}) {
    auto socket = helper.open_counts(cpus, soon());
    if (socket) return ThreadCountsClient(std::move(*socket));
    CHECK((socket.error().kind == ErrorKind::not_found || socket.error().kind == ErrorKind::forbidden));
    MESSAGE("skipped: " << socket.error().text());
    return std::nullopt;
}

bool reads(ThreadCountsClient& client) {
    const pid_t self = ::getpid();
    const auto counts = client.read({&self, 1});
    return counts && counts->front().alive == 1 && counts->front().voluntary > 0;
}

} // namespace

TEST_CASE("the reader of thread counts has one capability, another user, the CPUs it was given, and no way back") {
    Bench bench;
    const int cpu = CpuList::parse(status_line(::getpid(), "Cpus_allowed_list")).value().ids().back();
    auto client = open(*bench.client, {cpu});
    if (!client) return;
    CHECK(reads(*client));
    const pid_t reader = client->reader();
    if (is_root()) {
        CHECK(status_line(reader, "Uid") == "54321\t54321\t54321\t54321");
        CHECK(status_line(reader, "Groups").find_first_not_of(' ') == std::string::npos);
        for (const char* set : {"CapPrm", "CapEff"}) CHECK(status_line(reader, set) == "0000000000001000");
        for (const char* set : {"CapInh", "CapAmb"}) CHECK(status_line(reader, set) == "0000000000000000");
    }
    CHECK(status_line(reader, "NoNewPrivs") == (is_root() ? "1" : "0"));
    CHECK(status_line(reader, "Cpus_allowed_list") == std::to_string(cpu));
    const auto files = FileTree().list("/proc/" + std::to_string(reader) + "/fd");
    REQUIRE(files);
    CHECK(files->size() <= 3 + 3); // 0-2, the socket to the kernel, that to the agent, children
    const auto second = bench.client->open_counts({}, soon());
    REQUIRE_FALSE(second);
    CHECK(second.error().kind == ErrorKind::conflict);
}

TEST_CASE("the reader outlives the runs that are ended, ends with its socket, and can be had again") {
    for (const bool cgroups : {true, false}) {
        Bench bench(cgroups);
        auto client = open(*bench.client);
        if (!client) return;
        {
            auto guard = bench.client->begin_run({1, 1}, soon());
            REQUIRE(guard);
            REQUIRE(guard->spawn(order({"sleep", "60"}), soon()));
        } // dropped: the helper ends what it left
        REQUIRE(bench.client->end_run(1, true, soon()));
        REQUIRE(bench.client->sweep(true, soon()));
        CHECK(reads(*client));
        const pid_t reader = client->reader();
        client.reset();
        CHECK(
            eventually([&] { return ::kill(reader, 0) != 0 || read_process_stat(FileTree(), reader)->state == 'Z'; }));
        CHECK(eventually([&] {
            auto again = bench.client->open_counts({}, soon());
            if (!again) return false;
            ThreadCountsClient second(std::move(*again));
            return reads(second);
        }));
    }
}

TEST_CASE("no reader is left when the helper's agent is gone, though a copy of its socket is kept open") {
    std::optional<Bench> bench(std::in_place);
    auto client = open(*bench->client);
    if (!client) return;
    CHECK(reads(*client));
    const pid_t reader = client->reader();
    bench.reset(); // waits for the helper
    CHECK(::kill(reader, 0) != 0);
    CHECK_FALSE(reads(*client));
}
