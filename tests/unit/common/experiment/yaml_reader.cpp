#include "common/experiment/yaml_reader.hpp"
#include "tests/support/doctest.hpp"

using namespace perfrig;

TEST_CASE("typed reading takes good values and the fallback of missing ones") {
    const YamlOutcome yaml = parse_yaml(
        "port: 80\nratio: 0.5\non: true\nwait: 90s\nroom: 2MiB\nname: x\nlist: [a, 1]\nmap: {k: v}\ndb: {url: u}\n");
    std::vector<Fault> faults;
    YamlReader in(*yaml.tree, "", faults);
    CHECK(in.integer("port", 1, 1, 65535) == 80);
    CHECK(in.number("ratio", 1, 0, 1) == 0.5);
    CHECK(in.boolean("on", false));
    CHECK(in.duration("wait", {}) == std::chrono::seconds(90));
    CHECK(in.size_bytes("room", 0) == 2 << 20);
    CHECK(in.text("name") == "x");
    CHECK(in.texts("list") == std::vector<std::string>{"a", "1"});
    CHECK(in.text_map("map") == std::map<std::string, std::string>{{"k", "v"}});
    YamlReader db = in.map("db");
    CHECK(db.text("url") == "u");
    CHECK(db.text("user", "nobody") == "nobody");
    db.finish();
    CHECK(in.integer("missing", 7, 0, 9) == 7);
    in.finish();
    CHECK(faults.empty());
}

TEST_CASE("each wrong value is a fault at its place, and all of them come at once") {
    const YamlOutcome yaml =
        parse_yaml("port: 99999\nratio: half\non: yes\nwait: 30\nroom: big\nlist: a\nmap: [1]\ndb: 5\nprot: 1\n");
    std::vector<Fault> faults;
    YamlReader in(*yaml.tree, "", faults);
    CHECK(in.integer("port", 1, 1, 65535) == 1);
    in.number("ratio", 1, 0, 1);
    CHECK_FALSE(in.boolean("on", false));
    in.duration("wait", {});
    in.size_bytes("room", 0);
    in.texts("list");
    in.text_map("map");
    in.map("db").finish();
    CHECK(in.text("name").empty());
    in.finish();
    std::vector<int> lines;
    for (const Fault& fault : faults) lines.push_back(fault.line);
    CHECK(lines == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 1, 9});
    CHECK(faults.back().message == "unknown key 'prot'");
    CHECK(faults.back().remedy == "did you mean 'port'?");
    CHECK(faults[2].message == "on must be true or false, not 'yes'");
}

TEST_CASE("a whole number has no fraction, sign of plus, blank or exponent") {
    for (const char* text : {"1.0", "1e3", "0x10", "' 1'", "\"\"", "1_000", "99999999999999999999"}) {
        CAPTURE(text);
        const YamlOutcome yaml = parse_yaml(std::string("n: ") + text);
        std::vector<Fault> faults;
        YamlReader in(*yaml.tree, "", faults);
        in.integer("n", 0, 0, 1000);
        CHECK(faults.size() == 1);
    }
}
