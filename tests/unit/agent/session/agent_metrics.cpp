#include "agent/session/agent_metrics.hpp"
#include "tests/unit/agent/session/spool_rig.hpp"

#include <cstdlib>
#include <fstream>

using namespace perfrig;
using perfrig::testing::TempFolder;

namespace {

ProcessSnapshot busy_snapshot() {
    ProcessSnapshot snapshot;
    snapshot.at_ns = 1;
    snapshot.window_seconds = 1;
    snapshot.cpus = {{0, 0.5, 0, 0.25, 0, 0, 0, 0, 0.25, 2.3e9}, {1, 0, 0, 0, 0, 0, 0, 0, 1, std::nullopt}};
    snapshot.groups = {{"nginx", "app", "ngi\"nx\n", 4, 0.5, 0.25, 0.1, 100, 2}};
    snapshot.memory = {{"nginx", "app", 4096}};
    snapshot.memory_available_bytes = 1e9;
    return snapshot;
}

std::string busy_text() {
    WorkStatus::View work;
    work.run = 12;
    work.experiment = "web";
    work.state = "measuring";
    work.measuring = true;
    LinkFigures link;
    link.connected = true;
    link.clock_offset_ns = 1'500'000;
    return agent_exposition(busy_snapshot(), work, {100, 3, 2'000'000'000, 0}, link, {1.5, 1e6}, "0.1.0");
}

HttpRequest with_token(const std::string& token) {
    HttpRequest request;
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    return request;
}

} // namespace

TEST_CASE("the agent's metrics hold live figures, and the run's id stands in the info metric alone") {
    const std::string text = busy_text();
    CHECK(text.find("perfrig_cpu_share_ratio{cpu=\"0\",mode=\"user\"} 0.5") != std::string::npos);
    CHECK(text.find("perfrig_spool_records 3") != std::string::npos);
    CHECK(text.find("perfrig_spool_oldest_seconds 2") != std::string::npos);
    CHECK(text.find("run=\"12\"") != std::string::npos);
    CHECK(text.find("run=\"12\"", text.find("run=\"12\"") + 1) == std::string::npos);
}

TEST_CASE("promtool accepts the agent's metrics") {
    if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
        MESSAGE("skipped: no promtool here");
        return;
    }
    TempFolder folder;
    std::ofstream(folder.path("metrics")) << busy_text();
    CHECK(std::system(("promtool check metrics < " + folder.path("metrics") + " >&2").c_str()) == 0);
}

TEST_CASE("only a token whose hash the controller named may scrape") {
    const std::vector<std::string> hashes = {sha256_hex("other"), sha256_hex("good")};
    CHECK(may_scrape(with_token("good"), hashes));
    CHECK_FALSE(may_scrape(with_token("bad"), hashes));
    CHECK_FALSE(may_scrape(with_token(""), hashes));
    CHECK_FALSE(may_scrape(with_token(sha256_hex("good")), hashes)); // the hash is not the token
    CHECK_FALSE(may_scrape(with_token("good"), {}));
}

TEST_CASE("scrape hashes outlive a restart, and a missing or broken file lets nobody in") {
    TempFolder folder;
    REQUIRE(save_scrape_hashes(folder.path("scrape.json"), {"a", "b"}));
    CHECK(load_scrape_hashes(folder.path("scrape.json")) == std::vector<std::string>{"a", "b"});
    CHECK(load_scrape_hashes(folder.path("none")).empty());
    std::ofstream(folder.path("broken")) << "{";
    CHECK(load_scrape_hashes(folder.path("broken")).empty());
}
