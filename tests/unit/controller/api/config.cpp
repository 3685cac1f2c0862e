// Where a setting comes from: flags over environment over file over default.
#include "controller/api/config.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace perfrig::api;

namespace {

ConfigSources sources(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {},
                      std::map<std::string, std::string> files = {}) {
    ConfigSources out;
    out.arguments = std::move(arguments);
    out.environment = [environment](const std::string& name) -> std::optional<std::string> {
        const auto at = environment.find(name);
        return at == environment.end() ? std::nullopt : std::optional(at->second);
    };
    out.read_file = [files](const std::string& path) -> Result<std::string> {
        const auto at = files.find(path);
        if (at == files.end()) return fail(ErrorKind::not_found, "read", path, "no such file");
        return at->second;
    };
    return out;
}

std::string refusal(const ConfigSources& given) {
    const auto loaded = load_config(given);
    REQUIRE(!loaded);
    return loaded.error().text();
}

} // namespace

TEST_CASE("flags win over the environment, the environment over the file, the file over defaults") {
    const std::map<std::string, std::string> files{
        {"c.yaml", "listen: 127.0.0.1:1\npool_size: 5\ndatabase: dbname=a\n"}};
    auto config = load_config(sources({"--config", "c.yaml"}, {}, files)).value().config;
    CHECK(config.listen.port == 1);
    CHECK(config.pool_size == 5);
    CHECK(config.lease == Milliseconds{15'000});
    config = load_config(sources({"--config=c.yaml"}, {{"PERFRIG_LISTEN", "127.0.0.1:2"}}, files)).value().config;
    CHECK(config.listen.port == 2);
    config = load_config(sources({"--listen", "127.0.0.1:3"},
                                 {{"PERFRIG_LISTEN", "127.0.0.1:2"}, {"PERFRIG_CONFIG", "c.yaml"}}, files))
                 .value()
                 .config;
    CHECK(config.listen.port == 3);
    CHECK(config.database == "dbname=a");
}

TEST_CASE("without TLS nothing but loopback is listened on") {
    CHECK(refusal(sources({"--database", "x", "--listen", "0.0.0.0:7117"})).find("loopback") != std::string::npos);
    CHECK(refusal(sources({"--database", "x", "--listen", "192.168.1.5:7117"})).find("loopback") != std::string::npos);
    CHECK(load_config(sources({"--database", "x", "--listen", "[::1]:7117"})).value().config.listen.host == "::1");
}

TEST_CASE("what is wrong is named with its place and a remedy") {
    CHECK(refusal(sources({"--lissen", "x"})).find("--listen") != std::string::npos);
    CHECK(refusal(sources({"--database", "x", "--database-wait", "30"})).find("--database-wait") != std::string::npos);
    CHECK(refusal(sources({"--database", "x"}, {{"PERFRIG_POOL_SIZE", "3"}})).find("PERFRIG_POOL_SIZE") !=
          std::string::npos);
    const auto file =
        refusal(sources({"--config", "c.yaml"}, {}, {{"c.yaml", "database: x\nlisten: 1\npool_sise: 3\n"}}));
    CHECK(file.find("c.yaml:3:1") != std::string::npos);
    CHECK(file.find("pool-size") != std::string::npos);
    CHECK(refusal(sources({"--listen", "127.0.0.1:1"})).find("--database") != std::string::npos);
    CHECK(refusal(sources({"--database"})).find("missing") != std::string::npos);
}

TEST_CASE("the connection string may lie in a file, and what is printed hides its password") {
    const std::map<std::string, std::string> files{{"db", "host=x password=secret1 dbname=y\n"}};
    CHECK(load_config(sources({"--database-file", "db"}, {}, files)).value().config.database ==
          "host=x password=secret1 dbname=y");
    for (const char* text :
         {"host=x password=secret1 dbname=y", "postgresql://me:secret1@host/db", "password='secret1' host=x"}) {
        const auto printed = load_config(sources({"--print-config", "--database", text})).value();
        CHECK(printed.action == Invocation::Action::print_config);
        CHECK(printed.output.find("secret1") == std::string::npos);
        CHECK(printed.output.find("# --database") != std::string::npos);
    }
}

TEST_CASE("help shows every option with its variable and an example") {
    const auto help = load_config(sources({"--help"})).value();
    for (const char* word : {"--listen", "PERFRIG_LISTEN", "database_wait:", "--admin-token-file", "curl"})
        CHECK_MESSAGE(help.output.find(word) != std::string::npos, word);
}
