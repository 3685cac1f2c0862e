#include "agent/setup/config.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "tests/support/doctest.hpp"

#include <filesystem>

using namespace perfrig;

namespace {
constexpr const char* good = R"(controller: http://127.0.0.1:7117
name: xeon
labels: {cpu: cascade-lake}
state_dir: /var/lib/x/
profile:
  roles: {app: 0, load: "1-2", monitor: 3}
  share: [[load, monitor]]
network_during_measure: after_measure
spool: {most_bytes: 1GiB}
)";
std::string why(const std::string& text) {
    const auto config = parse_config(text, "agent.yaml", {});
    REQUIRE_FALSE(config);
    return config.error().text();
}
} // namespace

TEST_CASE("the configuration is read, with its defaults") {
    const auto config = parse_config(good, "agent.yaml", {});
    REQUIRE(config);
    CHECK(config->name == "xeon");
    CHECK(config->state_dir == "/var/lib/x");
    CHECK(config->work_dir == "/var/lib/x/work");
    CHECK(config->token_file == "/var/lib/x/token");
    CHECK(config->profile.roles.at("app").text() == "0");
    CHECK(config->profile.roles.at("load").text() == "1-2");
    CHECK(config->profile.limits.log_bytes == 16 << 20);
    CHECK(config->during_measure == NetworkPolicy::after_measure);
    CHECK(config->spool.most_bytes == 1ULL << 30);
    CHECK(config->metrics_listen == "127.0.0.1:9464");
}

TEST_CASE("flags and environment override the file") {
    const auto config = parse_config(good, "agent.yaml", {{"name", "other"}, {"state_dir", "/s"}});
    REQUIRE(config);
    CHECK(config->name == "other");
    CHECK(config->token_file == "/s/token");
    CHECK_FALSE(parse_config(good, "agent.yaml", {{"nmae", "x"}}));
}

TEST_CASE("every fault of the file is told at once, with its place") {
    const std::string text = why("nmae: x\nlog_level: loud\nspool: {most_bytes: 7}\n");
    CHECK(text.find("agent.yaml:1:1") != std::string::npos);
    CHECK(text.find("name") != std::string::npos); // the nearest known key
    CHECK(text.find("agent.yaml:2:") != std::string::npos);
    CHECK(text.find("agent.yaml:3:") != std::string::npos);
}

TEST_CASE("a profile that can't be is refused with its place") {
    CHECK(why("profile: {roles: {app: \"3-1\"}}").find("roles.app") != std::string::npos);
    CHECK(why("profile: {roles: {app: 0}, share: [[app, db]]}").find("share") != std::string::npos);
}

TEST_CASE("a controller or metrics address off this machine is refused until TLS exists") {
    CHECK(why("controller: http://10.0.0.1:7117").find("TLS") != std::string::npos);
    CHECK(why("controller: https://127.0.0.1:7117").find("TLS") != std::string::npos);
    CHECK(why("metrics_listen: 0.0.0.0:9464").find("TLS") != std::string::npos);
    CHECK(parse_config("controller: http://localhost:7117", "x", {}));
}

TEST_CASE("a token file that others may read is refused") {
    const std::string path = std::filesystem::temp_directory_path() / ("perfrig-token-" + random_hex(8));
    AgentConfig config;
    config.token_file = path;
    CHECK(agent_token(config).error().kind == ErrorKind::not_found);
    REQUIRE(write_file_atomically(path, "abc\n", 0644));
    CHECK(agent_token(config).error().kind == ErrorKind::forbidden);
    REQUIRE(write_file_atomically(path, "abc\n", 0600));
    CHECK(agent_token(config).value() == "abc");
    std::filesystem::remove(path);
}
