#include "common/experiment/yaml_tree.hpp"
#include "tests/support/doctest.hpp"

#include <random>

using namespace perfrig;

namespace {

std::string texts(const std::vector<Fault>& faults) {
    std::string out;
    for (const Fault& fault : faults) out += fault.text("f") + "\n";
    return out;
}

YamlNode tree(std::string_view text) {
    YamlOutcome out = parse_yaml(text);
    REQUIRE_MESSAGE(out.faults.empty(), texts(out.faults));
    REQUIRE(out.tree);
    return std::move(*out.tree);
}

} // namespace

TEST_CASE("every key and value knows its line and column, counted in characters") {
    const YamlNode root = tree("a: 1\nb:\n  - x\n  - {k: \"v\"}\nü: [é, y]\n");
    CHECK(root.find("a")->mark == YamlMark{1, 4});
    CHECK(root.entry("b")->key_mark == YamlMark{2, 1});
    CHECK(root.find("b")->items[0].mark == YamlMark{3, 5});
    CHECK(root.find("b")->items[1].entry("k")->key_mark == YamlMark{4, 6});
    CHECK(root.find("b")->items[1].find("k")->mark == YamlMark{4, 9});
    CHECK(root.find("ü")->items[1].mark == YamlMark{5, 8});
}

TEST_CASE("scalars keep their text and whether they were quoted") {
    const YamlNode root = tree("[3.10, off, 1e3, 007, \"3.10\", 'off', yes]");
    for (const auto& [index, text] :
         {std::pair{0, "3.10"}, {1, "off"}, {2, "1e3"}, {3, "007"}, {4, "3.10"}, {5, "off"}, {6, "yes"}})
        CHECK(root.items[static_cast<std::size_t>(index)].text == text);
    CHECK_FALSE(root.items[0].quoted);
    CHECK(root.items[4].quoted);
    CHECK(root.items[5].quoted);
}

TEST_CASE("a missing value is null and stands where its key stands") {
    const YamlNode root = tree("a:\nb: ~\nc: null\n");
    CHECK(root.find("a")->is_null());
    CHECK(root.find("a")->mark == YamlMark{1, 1});
    CHECK(root.find("b")->mark == YamlMark{2, 4});
    CHECK(root.find("c")->is_null());
}

TEST_CASE("an empty text is a null tree") {
    for (const char* text : {"", "# only a comment\n", "---\n", "\n\n"}) CHECK(tree(text).is_null());
}

TEST_CASE("what the language leaves out is refused with its place") {
    struct Case {
        const char* text;
        int line, column;
        const char* says;
    };
    const Case cases[] = {
        {"a: 1\nb: &x 2\n", 2, 4, "anchors (&x)"},
        {"a: 1\nb: *x\n", 2, 4, "aliases"},
        {"a: 1\n<<: {b: 2}\n", 2, 1, "merge keys"},
        {"a: !!str 1\n", 1, 4, "tags"},
        {"a: !mine {b: 1}\n", 1, 4, "tags"},
        {"a: ! 1\n", 1, 4, "tags"},
        {"a: 1\n---\nb: 2\n", 2, 1, "second document"},
        {"? [a]\n: 1\n", 1, 3, "a key must be plain text"},
        {": 1\n", 1, 1, "a key is missing"},
        {"x:\n  a: 1\n  b: 2\n  a: 3\n", 4, 3, "duplicate key 'a' in x"},
        {"\"a\": 1\na: 2\n", 2, 1, "duplicate key 'a'"},
        {"a:\n\tb: 1\n", 2, 1, "a tab in the indentation"},
        {"a:\n  b: 1\n  \tc: 2\n", 3, 3, "a tab in the indentation"},
        {"a: [1, 2\nb: 3\n", 2, 2, "begun at line 1, column 4"},
        {"a: {b: 1\n", 2, 1, "begun at line 1, column 4"},
        {"a: [x, ${y}]\n", 1, 9, "is not closed where it should be"},
        {"a: \"x\nb: 3\n", 1, 4, "this quote is never closed"},
        {"a: 'it''s\n", 1, 4, "this quote is never closed"},
        {"a: b: c\n", 1, 5, "a ':' can't stand here"},
        {"a: ]\n", 1, 4, "closes nothing"},
        {"a: @x\n", 1, 4, "can't begin like this"},
        {"a: \"\\q\"\n", 1, 7, "unknown escape"},
        {"a: \"\\0\"\n", 1, 4, "zero byte"},
        {"a: \n  - x\n  y: 1\n", 3, 3, "does not continue"},
        {"a: \xFF\n", 1, 4, "byte 0xFF at offset 3 is not UTF-8"},
        {"a: \xC0\xAF\n", 1, 4, "is not UTF-8"},
        {"ok: 1\na: \xED\xA0\x80\n", 2, 4, "is not UTF-8"},
        {"a: \x01\n", 1, 4, "control character"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.text);
        const YamlOutcome out = parse_yaml(c.text);
        REQUIRE_FALSE(out.faults.empty());
        CAPTURE(texts(out.faults));
        CHECK(out.faults[0].line == c.line);
        CHECK(out.faults[0].column == c.column);
        CHECK(out.faults[0].message.find(c.says) != std::string::npos);
    }
}

TEST_CASE("faults that don't end the reading are all collected") {
    const YamlOutcome out = parse_yaml("a: &x 1\nb: 2\nb: 3\nc: !t 4\n");
    CHECK(out.faults.size() == 3);
    REQUIRE(out.tree);
    CHECK(out.tree->find("b")->text == "2");
}

TEST_CASE("text beyond the bounds is refused, quickly") {
    CHECK(texts(parse_yaml("a: " + std::string(10 << 20, 'x')).faults).find("10485763 bytes") != std::string::npos);
    for (const char* opening : {"[", "{a: ", "- "}) {
        std::string deep;
        for (int i = 0; i < 100'000; ++i) deep += opening;
        const YamlOutcome out = parse_yaml(deep);
        CHECK_FALSE(out.tree);
        CHECK(texts(out.faults).find("nested deeper than 32 levels") != std::string::npos);
    }
    std::string wide;
    for (int i = 0; i < 100'001; ++i) wide += "- 1\n";
    CHECK(texts(parse_yaml(wide).faults).find("more than 100000 values") != std::string::npos);
    std::string just_deep_enough = "x";
    for (int i = 0; i < 32; ++i) just_deep_enough = "[" + just_deep_enough + "]";
    CHECK(parse_yaml(just_deep_enough).tree);
    CHECK_FALSE(parse_yaml("[" + just_deep_enough + "]").tree);
}

TEST_CASE("a million bytes on one line of non-ASCII text are read without counting it again and again") {
    std::string line = "[";
    while (line.size() < 1'000'000) line += "éééé ü, ";
    line += "x]";
    YamlLimits limits;
    limits.most_nodes = 1'000'000;
    const YamlOutcome out = parse_yaml(line, limits);
    REQUIRE(out.tree);
    CHECK(out.tree->items.back().mark.line == 1);
}

TEST_CASE("as configuration, plain scalars follow YAML 1.2's core schema and quoted ones are text") {
    const Json json = to_json(tree("{a: 1, b: -2.5, c: true, d: \"true\", e: off, f: ~, g: 0x1F, h: 0o17, i: 30s, j: "
                                   "1e3, k: [yes, 010], l: +7, m: .5, n: nan}"));
    CHECK(json ==
          Json::parse(R"({"a":1,"b":-2.5,"c":true,"d":"true","e":"off","f":null,"g":31,"h":15,"i":"30s","j":1000.0,
                                  "k":["yes",10],"l":7,"m":0.5,"n":"nan"})"));
}

TEST_CASE("a tree written as YAML reads as the same tree") {
    const char* cases[] = {
        "a: 1\nb: [1, {c: d, e: []}, {}, null]\nf: |\n  line\n    indented\n\n  last\n",
        "a: \"- x\"\nb: \"${x}\"\nc: \" lead\"\nd: \"trail \"\ne: \"# no\"\nf: 'a: b'\ng: \"\\t\\n\\x01\"\nh: \"\"\ni: "
        "\"null\"\nj: \"~\"\n",
        "\"odd key\": 1\n\"null\": 2\n\"- k\": 3\n\"\": 4\n",
        "plain multi\n line: 1\n",
        "a: |\n  x\n   \n  y\n",
        "a: \"x\\r\\ny\\n\"\n",
        "- - - a\n- b\n",
        "just text",
    };
    for (const char* text : cases) {
        CAPTURE(text);
        const YamlOutcome first = parse_yaml(text);
        if (!first.tree) continue; // broken on purpose
        const std::string written = to_yaml(*first.tree);
        CAPTURE(written);
        CHECK(to_json(tree(written)) == to_json(*first.tree));
    }
}

TEST_CASE("random trees of odd texts survive being written and read") {
    std::mt19937 random(7);
    const std::vector<std::string> bits{"a", " ", "\n", "\t", ":", "#", "-", "'",  "\"",    "\\",
                                        "{", "}", "é",  "|",  "~", "1", "%", "\r", "  b\n", "null"};
    const auto text = [&] {
        std::string out;
        for (auto n = random() % 8; n > 0; --n) out += bits[random() % bits.size()];
        return out;
    };
    for (int round = 0; round < 2000; ++round) {
        YamlNode root;
        root.kind = YamlNode::Kind::map;
        for (int i = 0; i < 4; ++i) {
            const std::string key = text();
            if (root.find(key)) continue;
            YamlNode list;
            list.kind = YamlNode::Kind::list;
            list.items = {YamlNode::scalar(text(), true), YamlNode::scalar(text(), true)};
            root.entries.push_back({key, {}, i % 2 ? list : YamlNode::scalar(text(), true)});
        }
        const std::string written = to_yaml(root);
        CAPTURE(written);
        const YamlOutcome out = parse_yaml(written);
        CAPTURE(texts(out.faults));
        REQUIRE(out.tree);
        REQUIRE(to_json(*out.tree) == to_json(root));
    }
}

TEST_CASE("an override sets a scalar, adds what may be added, and replaces a list by a list") {
    YamlNode root = tree("phases: {measure: 30s}\nfiles: {nginx.conf: x}\nfactors: {c: [1, 2]}\n");
    const std::vector<std::string> may_add{"replicates", "phases."};
    CHECK(apply_overrides(
              root,
              {"phases.measure=4s", "phases.pause=1s", "replicates=3", "files.nginx.conf=a=b", "factors.c=[7, 8.0]"},
              may_add)
              .empty());
    CHECK(
        to_json(root) ==
        Json::parse(
            R"({"phases":{"measure":"4s","pause":"1s"},"files":{"nginx.conf":"a=b"},"factors":{"c":[7,8.0]},"replicates":3})"));
    CHECK(root.find("factors")->items.empty());
    CHECK(root.find("factors")->find("c")->items[1].text == "8.0");
}

TEST_CASE("a faulty override is named and changes nothing") {
    YamlNode root = tree("phases: {measure: 30s}\nfactors: {c: [1, 2]}\n");
    const Json before = to_json(root);
    const std::vector<Fault> faults = apply_overrides(
        root, {"phases.measure=4s", "phase.measure=4s", "nothing", "phases=1", "phases.measure.x=1", "factors.c=3"},
        {"phases."});
    CHECK(faults.size() == 5);
    CHECK(faults[0].line == 0);
    CHECK(faults[0].message.find("--set phase.measure") != std::string::npos);
    CHECK(faults[0].remedy == "did you mean 'phases'?");
    CHECK(to_json(root) == before);
}
