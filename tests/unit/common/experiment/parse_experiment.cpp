#include "common/experiment/experiment.hpp"

#include "tests/unit/common/experiment/experiments.hpp"

#include <chrono>

using namespace perfrig;

namespace {

// A good file; each case replaces one line of it.
constexpr std::string_view good_file = R"(perfrig: 1
name: web/scaling
description: what it asks
machine: {labels: {cpu: zen4}}
factors:
  connections: [1, 2, 10]
  branch: [keep, force_disable]
replicates: 2
order: random
seed: 42
kernel_args: {mitigations: "off", nosmt: null, quiet: true, spectre: "${branch}"}
roles:
  one: {from: app, cpus: 1}
ports: [http]
files:
  conf/nginx.conf: |
    listen ${port.http};
    root ${run.directory};
build:
  - make all
  - {command: [cc, x.c], environment: {CC: gcc}, directory: sub}
build_role: app
build_within: 5m
services:
  nginx:
    role: app
    command: [nginx, -c, conf/nginx.conf]
    environment: {MODE: fast, PASSWORD: {secret: hunter22}}
    directory: sub
    ready: {tcp: "127.0.0.1:${port.http}", within: 30s}
    stop: {signal: QUIT, grace: 3s}
    speculation: {indirect_branch: "${branch}", store_bypass: enable}
tools:
  wrk:
    tool: wrk
    role: load
    url: http://127.0.0.1:${port.http}/
    connections: ${connections}
    warms_up: false
  pipe:
    tool: perf-sched-pipe
    role: one
phases: {warm_up: 10s, pause: 500ms, measure: 30s}
)";

std::string replaced(std::string_view what, std::string_view by) {
    std::string text(good_file);
    const std::size_t at = text.find(what);
    REQUIRE_MESSAGE(at != std::string::npos, what);
    return text.replace(at, what.size(), by);
}

} // namespace

TEST_CASE("a good file is read whole") {
    const Experiment e = parsed(std::string(good_file));
    CHECK(e.name == "web/scaling");
    CHECK(e.machine.labels == std::map<std::string, std::string>{{"cpu", "zen4"}});
    CHECK(e.factors == std::vector<Factor>{{"connections", {"1", "2", "10"}}, {"branch", {"keep", "force_disable"}}});
    CHECK(e.replicates == 2);
    CHECK(e.order == RunOrder::random);
    CHECK(e.seed == 42);
    CHECK(e.secrets == std::vector<std::string>{"hunter22"});
    CHECK(e.definition == good_file);
}

TEST_CASE("what is left out has the stated defaults") {
    const Experiment e = parsed("perfrig: 1\nname: a\ntools: {p: {tool: perf-sched-pipe, role: app}}\n");
    CHECK(e.machine.any());
    CHECK(e.factors.empty());
    CHECK(e.replicates == 1);
    CHECK(e.order == RunOrder::interleaved);
    CHECK_FALSE(e.seed);
}

TEST_CASE("levels keep the text of the file") {
    const Experiment e = parsed(with_factors({{"x", {"3.10", "off", "1e3", "\"3.1\"", "007", "yes"}}}));
    CHECK(e.factors[0].levels == std::vector<std::string>{"3.10", "off", "1e3", "3.1", "007", "yes"});
}

TEST_CASE("each kind of bad input is refused at its place, in words, and nothing else is") {
    struct Case {
        std::string_view what, by;
        int line, column;
        std::string_view message, remedy;
    };
    const Case cases[] = {
        {"perfrig: 1", "perfrig: 2", 1, 10, "only version 1", "perfrig: 1"},
        {"name: web/scaling", "name: Web", 2, 7, "'Web' is no name of an experiment", ""},
        {"name: web/scaling", "name: ../x", 2, 7, "is no name of an experiment", ""},
        {"name: web/scaling", "name:", 2, 1, "name has no value", ""},
        {"name: web/scaling", "name: [a]", 2, 7, "name must be a single value, not a list", ""},
        {"name: web/scaling", "name: web-${branch}", 2, 7, "${...} can't be used in name", ""},
        {"{labels: {cpu: zen4}}", "a b", 4, 10, "machine is no name of a machine", ""},
        {"{labels: {cpu: zen4}}", "{label: {cpu: zen4}}", 4, 11, "unknown key 'label' in machine",
         "did you mean 'labels'?"},
        {"[1, 2, 10]", "[]", 6, 16, "factors.connections must be a list of levels", ""},
        {"[1, 2, 10]", "5", 6, 16, "factors.connections must be a list of levels", ""},
        {"[1, 2, 10]", "[1, 2, 2]", 6, 23, "the level '2' is given twice", ""},
        {"[1, 2, 10]", "[1, {a: b}]", 6, 20, "factors.connections.1 must be a single value", ""},
        {"[1, 2, 10]", "[1, ~]", 6, 20, "factors.connections.1 must be a single value", "quotes"},
        {"[1, 2, 10]", "[1, \"${branch}\"]", 6, 20, "a level can't hold ${", ""},
        {"  branch: [keep", "  other: [a]\n  branch: [keep", 7, 3, "nothing uses the factor 'other'", "${other}"},
        {"replicates: 2", "replicates: 0", 8, 13, "replicates is out of range: 0", "from 1 to 1000"},
        {"replicates: 2", "replicates: two", 8, 13, "replicates must be a whole number", ""},
        {"replicates: 2", "replicats: 2", 8, 1, "unknown key 'replicats'", "did you mean 'replicates'?"},
        {"order: random", "order: randon", 9, 8, "order can't be 'randon'", "did you mean 'random'?"},
        {"seed: 42", "seed: -1", 10, 7, "seed is out of range", ""},
        {"mitigations: \"off\"", "\"a b\": \"off\"", 11, 15, "is no name of a kernel parameter", ""},
        {"mitigations: \"off\"", "mitigations: [off]", 11, 28, "kernel_args.mitigations must be text", ""},
        {"mitigations: \"off\"", "mitigations: \"${run.directory}\"", 11, 28, "${run.directory} can't be used in",
         "only factors can"},
        {"cpus: 1", "cpus: 0", 13, 26, "roles.one.cpus is out of range", ""},
        {"from: app, ", "", 13, 8, "roles.one.from is missing", ""},
        {"ports: [http]", "ports: [http, http]", 14, 15, "the port 'http' is named twice", ""},
        {"ports: [http]", "ports: [8080, http]", 14, 9, "'8080' is no name of a port", ""},
        {"conf/nginx.conf: |", "/etc/passwd: |", 16, 3, "must lie within the run's directory", ""},
        {"conf/nginx.conf: |", "a/../../b: |", 16, 3, "must lie within the run's directory", ""},
        {"listen ${port.http}", "listen ${port.htp}", 17, 12, "unknown name ${port.htp} in files.conf/nginx.conf",
         "did you mean '${port.http}'?"},
        {"root ${run.directory}", "root $${run.directory} ${HOME}", 18, 28, "unknown name ${HOME}", "$${"},
        {"root ${run.directory};", "root ${run.directory", 18, 10, "is never closed", "$${"},
        {"- make all", "- [make, {a: b}]", 20, 12, "build.0.1 must be a single value", ""},
        {"- make all", "- \"\"", 20, 5, "build.0 is empty", ""},
        {"directory: sub}", "directory: ../sub}", 21, 61, "build.1.directory must lie within", ""},
        {"build_role: app", "build_role: App", 22, 13, "build_role is no name of a role", ""},
        {"build_within: 5m", "build_within: 5", 23, 15, "the unit is missing", "30s"},
        {"role: app\n    command: [nginx", "rolle: app\n    command: [nginx", 26, 5, "services.nginx.role is missing",
         ""},
        {"command: [nginx, -c, conf/nginx.conf]", "command: []", 27, 14,
         "services.nginx.command must be a list of arguments", ""},
        {"command: [nginx, -c, conf/nginx.conf]", "command: {a: b}", 27, 14,
         "services.nginx.command must be a list of arguments", ""},
        {"MODE: fast", "1MODE: fast", 28, 19, "is no name of a variable", ""},
        {"MODE: fast", "MODE: ~", 28, 25, "services.nginx.environment.MODE must be text", "\"\""},
        {"secret: hunter22", "secret: abc", 28, 50, "is too short a secret", "4 characters"},
        {"secret: hunter22", "secret: \"${branch}abc\"", 28, 50, "a secret can't hold ${...}", ""},
        {"secret: hunter22", "secrte: hunter22", 28, 41, "services.nginx.environment.PASSWORD.secret is missing", ""},
        {"tcp: \"127.0.0.1:${port.http}\"", "tcp: localhost", 30, 18, "must be HOST:PORT", ""},
        {"tcp: \"127.0.0.1:${port.http}\"", "tcp: \"localhost:70000\"", 30, 18, "must be HOST:PORT", ""},
        {"tcp: \"127.0.0.1:${port.http}\"", "http: ftp://x", 30, 19, "must be an http:// URL", ""},
        {"tcp: \"127.0.0.1:${port.http}\"", "log: \"(\"", 30, 18, "services.nginx.ready.log", ""},
        {"tcp: \"127.0.0.1:${port.http}\"", "log: x, http: http://h", 30, 12, "more than one way to tell", ""},
        {"tcp: \"127.0.0.1:${port.http}\", ", "", 30, 12, "says no way to tell", ""},
        {"within: 30s", "within: 30 s", 30, 52, "services.nginx.ready.within is no duration", ""},
        {"signal: QUIT", "signal: SIGQUIT", 31, 20, "services.nginx.stop.signal can't be 'SIGQUIT'", "TERM"},
        {"store_bypass: enable", "store_bypass: enabled", 32, 63, "can't be 'enabled'", "did you mean 'enable'?"},
        {"tool: wrk", "tool: wkr", 35, 11, "there is no tool 'wkr'", "did you mean 'wrk'?"},
        {"connections: ${connections}", "conections: ${connections}", 38, 5, "unknown key 'conections' in tools.wrk",
         "did you mean 'connections'?"},
        {"url: http://127.0.0.1:${port.http}/", "url: gopher://x", 37, 10, "tools.wrk.url", ""},
        {"warms_up: false", "warms_up: no", 39, 15, "tools.wrk.warms_up must be true or false, not 'no'", ""},
        {"  pipe:", "  nginx:", 40, 3, "'nginx' names a service and a tool", ""},
        {"  pipe:", "  Pipe:", 40, 3, "'Pipe' is no name", ""},
        {"measure: 30s", "measure: 1500ms", 43, 47, "wrk takes whole seconds only", ""},
        {", measure: 30s", "", 43, 9, "phases.measure is missing, and tools.wrk does not end by itself", ""},
        {"measure: 30s", "measure: 0s", 43, 47, "phases.measure is zero", ""},
        {"measure: 30s", "mesure: 30s", 43, 38, "unknown key 'mesure' in phases", "did you mean 'measure'?"},
        {"pause: 500ms", "pause: 500us", 43, 31, "finer than a millisecond", ""},
        {"pause: 500ms", "pause: -1s", 43, 31, "it is negative", ""},
        {"pause: 500ms", "pause: \"${measure.seconds}s\"", 43, 31, "${measure.seconds} can't be used in phases.pause",
         ""},
    };
    for (const Case& c : cases) {
        CAPTURE(c.what);
        CAPTURE(c.by);
        const ParseOutcome out = parse_experiment(replaced(c.what, c.by));
        CAPTURE(texts(out.faults));
        CHECK_FALSE(out.experiment);
        bool found = false;
        for (const Fault& fault : out.faults)
            found = found || (fault.line == c.line && fault.column == c.column &&
                              fault.message.find(c.message) != std::string::npos &&
                              fault.remedy.find(c.remedy) != std::string::npos);
        CHECK(found);
        CHECK(out.faults.size() <= 3); // a misspelt key is also a missing one, and no fault brings others
    }
}

TEST_CASE("several faults come at once, in the order of the file") {
    std::string text(good_file);
    for (const auto& [what, by] : {std::pair{"replicates: 2", "replicats: 2"},
                                   {"name: web", "name: WEB"},
                                   {"tool: wrk", "tool: wkr"},
                                   {"pause: 500ms", "pause: soon"}})
        text.replace(text.find(what), std::string_view(what).size(), by);
    const ParseOutcome out = parse_experiment(text);
    std::vector<int> lines;
    for (const Fault& fault : out.faults) lines.push_back(fault.line);
    const std::vector<int> wanted{2, 8, 35, 43};
    CHECK_MESSAGE(lines == wanted, texts(out.faults));
}

TEST_CASE("a level that makes an option bad is reported at the option, with the level") {
    const ParseOutcome out = parse_experiment(replaced("[1, 2, 10]", "[1, 0, many, 10]"));
    REQUIRE(out.faults.size() == 2);
    for (const Fault& fault : out.faults) CHECK(fault.line == 38);
    CHECK(texts(out.faults).find("with connections=0") != std::string::npos);
    CHECK(texts(out.faults).find("with connections=many") != std::string::npos);
}

TEST_CASE("options that two factors make bad together name what it depends on") {
    const std::string text = "perfrig: 1\nname: a\nfactors: {c: [1, 2, 4], t: [1, 2], p: [x, y]}\ntools:\n  wrk: "
                             "{tool: wrk, role: load, url: \"http://h/$${p}${p}\", "
                             "connections: \"${c}\", threads: \"${t}\"}\nphases: {measure: 2s}\n";
    const ParseOutcome out = parse_experiment(text);
    REQUIRE(out.faults.size() == 1);
    CHECK(out.faults[0].message.ends_with(", with c=1, t=2"));
}

TEST_CASE("a factor that changes only what is left to the agent, or nothing at all, is a fault") {
    const ParseOutcome same = parse_experiment(with_factors({{"a", {"x", "y"}}}) + "kernel_args: {k: \"${b}\"}\n");
    CHECK(same.faults.size() == 1); // b is no factor
    std::string text = replaced("[keep, force_disable]", "[keep, \"\", force_disable]");
    text.replace(text.find(", spectre: \"${branch}\""), 22, "");
    const ParseOutcome alike = parse_experiment(text);
    REQUIRE_MESSAGE(alike.faults.size() == 1, texts(alike.faults));
    CHECK(alike.faults[0].message.find("two cells are the same run: with branch=keep and with branch=") !=
          std::string::npos);
    CHECK(alike.faults[0].line == 7);
}

TEST_CASE("kernel parameters count as a use of a factor") {
    std::string text = replaced("indirect_branch: \"${branch}\"", "indirect_branch: keep");
    CHECK(parse_experiment(text).experiment);
}

TEST_CASE("comments and layout don't change the definition's hash, values do, secrets don't show in it") {
    const Experiment e = parsed(std::string(good_file));
    CHECK(parsed("# comment\n" + std::string(good_file)).definition_sha256 == e.definition_sha256);
    CHECK(parsed(replaced("replicates: 2", "replicates: 3")).definition_sha256 != e.definition_sha256);
    CHECK(parsed(replaced("hunter22", "hunter23")).definition_sha256 == e.definition_sha256);
}

TEST_CASE("overrides make a new effective definition, which is itself a good file") {
    const Experiment e =
        parsed(std::string(good_file), {"phases.measure=4s", "replicates=1", "factors.connections=[3]"});
    CHECK(e.replicates == 1);
    CHECK(e.factors[0].levels == std::vector<std::string>{"3"});
    const Experiment again = parsed(e.definition);
    CHECK(again.definition_sha256 == e.definition_sha256);
    CHECK(again.factors == e.factors);
}

TEST_CASE("a bad override is a fault without a line") {
    const ParseOutcome out = parse_experiment(good_file, {"phases.measure=soon"});
    REQUIRE(out.faults.size() == 1);
    CHECK(out.faults[0].text("web.yaml").starts_with("web.yaml: phases.measure is no duration"));
    CHECK(parse_experiment(good_file, {"measure=4s"}).faults.size() == 1);
}

TEST_CASE("what is no experiment at all is said in one fault") {
    for (const char* text : {"", "- a\n", "hello", "[]", "perfrig: 1\nname: [\n"}) {
        CAPTURE(text);
        const ParseOutcome out = parse_experiment(text);
        CHECK_FALSE(out.experiment);
        CHECK(out.faults.size() == 1);
    }
    CHECK(parse_experiment(std::string(10 << 20, 'a')).faults.size() == 1);
}

TEST_CASE("a file with thousands of faults is told the first five hundred and how many more there are") {
    std::string text = "perfrig: 1\nname: a\ntools: {p: {tool: perf-sched-pipe, role: app}}\n";
    for (int i = 0; i < 3000; ++i) text += "key" + std::to_string(i) + ": 1\n";
    const ParseOutcome out = parse_experiment(text);
    REQUIRE(out.faults.size() == 501);
    CHECK(out.faults.back().message == "and 2500 more faults");
}

TEST_CASE("a thousand million cells are refused at once") {
    std::vector<std::pair<std::string, std::vector<std::string>>> factors;
    std::vector<std::string> levels;
    for (int i = 0; i < 1000; ++i) levels.push_back(std::to_string(i));
    for (const char* name : {"a", "b", "c"}) factors.emplace_back(name, levels);
    const ParseOutcome out = parse_experiment(with_factors(factors));
    REQUIRE(out.faults.size() == 1);
    CHECK(out.faults[0].message == "the factors make 1000000000 cells");
    for (const char* name : {"d", "e", "f", "g", "h"}) factors.emplace_back(name, levels);
    CHECK(parse_experiment(with_factors(factors)).faults[0].message == "the factors make too many to count cells");
}

TEST_CASE("levels that would grow without bound when filled in are refused") {
    std::string file;
    for (int i = 0; i < 1000; ++i) file += "${a}";
    const std::string text = "perfrig: 1\nname: a\nfactors: {a: [" + std::string(2000, 'x') + "]}\nfiles: {f: \"" +
                             file + "\"}\ntools: {p: {tool: perf-sched-pipe, role: app}}\n";
    const ParseOutcome out = parse_experiment(text);
    REQUIRE(out.faults.size() == 1);
    CHECK(out.faults[0].message.find("grows beyond 1 MiB") != std::string::npos);
}

TEST_CASE("a service without load is a run, and nothing at all is not") {
    const char* service = "perfrig: 1\nname: a\nservices: {s: {role: app, command: sleep 1}}\nphases: {measure: 1s}\n";
    CHECK(parse_experiment(service).experiment);
    CHECK(texts(parse_experiment("perfrig: 1\nname: a\nphases: {measure: 1s}\n").faults).find("nothing to run") !=
          std::string::npos);
}

TEST_CASE("a command that ends by itself needs no measure phase, and others do") {
    const std::string start = "perfrig: 1\nname: a\ntools:\n  t: {tool: command, role: app, command: [x], metrics: "
                              "[{name: v, unit: s, pattern: (1)}]";
    CHECK(parse_experiment(start + ", ends_by_itself: true}\n").experiment);
    const std::string missing = texts(parse_experiment(start + "}\n").faults);
    CHECK(missing.find("does not end by itself") != std::string::npos);
    CHECK(missing.find("ends_by_itself: true") != std::string::npos); // the other cure
}
