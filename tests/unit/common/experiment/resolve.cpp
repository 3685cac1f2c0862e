#include "common/experiment/plan.hpp"

#include "tests/unit/common/experiment/experiments.hpp"

using namespace perfrig;

namespace {

const RoleGrants lab{{{"app", "2,4,6,8"}, {"db", "10"}, {"load", "12-13"}, {"monitor", "0"}},
                     {{"load", "monitor"}, {"db", "monitor"}}};

constexpr const char* full = R"(perfrig: 1
name: web/scaling
factors:
  connections: [1, 20]
  branch: [keep, force_disable]
kernel_args: {mitigations: "off", nosmt: null, quiet: true}
roles:
  pair: {from: [db, load], cpus: 2}
ports: [http]
files:
  c.conf: "listen ${port.http}; c ${connections}; $${keep}; for ${measure.seconds} and ${warm_up.seconds}"
build:
  - make ${branch}
  - {command: [cc, x.c], environment: {CC: gcc}, directory: sub}
services:
  nginx:
    role: app
    command: "exec nginx ${connections}"
    environment: {PASSWORD: {secret: hunter22}}
    ready: {http: "http://127.0.0.1:${port.http}/", within: 3s}
    stop: {signal: QUIT, grace: 2s}
    speculation: {indirect_branch: "${branch}"}
tools:
  wrk: {tool: wrk, role: pair, url: "http://127.0.0.1:${port.http}/", connections: "${connections}", threads: 1, warms_up: false}
phases: {warm_up: 10s, pause: 500ms, measure: 30s}
)";

ResolvedRun resolved(const Experiment& e, std::size_t cell, const RoleGrants& grants = lab) {
    const Result<Plan> plan = expand(e);
    REQUIRE(plan);
    Result<ResolvedRun> run = resolve(e, plan->cells.at(cell), 2, grants);
    REQUIRE(run);
    return *std::move(run);
}

} // namespace

TEST_CASE("a resolved run holds everything of its cell, with the levels filled in") {
    const ResolvedRun run = resolved(parsed(full), 3);
    CHECK(run.experiment == "web/scaling");
    CHECK(run.levels == std::map<std::string, std::string>{{"connections", "20"}, {"branch", "force_disable"}});
    CHECK(run.replicate == 2);
    CHECK(run.roles == std::map<std::string, std::string>{{"app", "2,4,6,8"}, {"pair", "10,12"}, {"monitor", "0"}});
    CHECK(run.files.at("c.conf") == "listen ${port.http}; c 20; ${keep}; for 30 and 10");
    CHECK(run.ports == std::vector<std::string>{"http"});
    REQUIRE(run.build.size() == 2);
    CHECK(run.build[0].argv == std::vector<std::string>{"/bin/sh", "-c", "make force_disable"});
    CHECK(run.build[1] == Command{{"cc", "x.c"}, {{"CC", "gcc"}}, "sub"});
    CHECK(run.build_role == "app");
    REQUIRE(run.services.size() == 1);
    CHECK(run.services[0].command.argv.back() == "exec nginx 20");
    CHECK(run.services[0].command.environment.at("PASSWORD") == "hunter22");
    CHECK(run.services[0].ready == Readiness{Readiness::Kind::http, "http://127.0.0.1:${port.http}/", {}, 3000});
    CHECK(run.services[0].stop_signal == "QUIT");
    CHECK(run.services[0].stop_grace_ms == 2000);
    CHECK(run.services[0].speculation.indirect_branch == "force_disable");
    REQUIRE(run.tools.size() == 1);
    CHECK(run.tools[0].options ==
          Json::parse(R"({"url":"http://127.0.0.1:${port.http}/","connections":"20","threads":"1"})"));
    CHECK_FALSE(run.tools[0].warms_up);
    CHECK(run.warm_up_ms == 10'000);
    CHECK(run.pause_ms == 500);
    CHECK(run.measure_ms == 30'000);
    CHECK(run.kernel_args == std::map<std::string, std::optional<std::string>>{
                                 {"mitigations", "off"}, {"nosmt", std::nullopt}, {"quiet", ""}});
    CHECK(run.secrets == std::vector<std::string>{"hunter22"});
}

TEST_CASE("the speculation level keep means leave alone") {
    CHECK(resolved(parsed(full), 0).services[0].speculation.indirect_branch.empty());
}

TEST_CASE("a resolved run survives the way through JSON") {
    for (const std::size_t cell : {0, 3}) {
        const ResolvedRun run = resolved(parsed(full), cell);
        const Result<ResolvedRun> again = resolved_run_from_json(to_json(run));
        REQUIRE(again);
        CHECK(*again == run);
        CHECK(hash_of(*again) == hash_of(run));
    }
    CHECK(hash_of(resolved(parsed(full), 0)) != hash_of(resolved(parsed(full), 1)));
}

TEST_CASE("a secret is nowhere in the redacted run") {
    const ResolvedRun run = resolved(parsed(full), 0);
    CHECK(to_json(run).dump().find("hunter22") != std::string::npos);
    CHECK(redact(to_json(run), run.secrets).dump().find("hunter22") == std::string::npos);
}

TEST_CASE("a role that the profile lacks is refused by name, with what it has and what to do") {
    const Experiment e = parsed(full);
    const Result<ResolvedRun> run = resolve(e, expand(e)->cells[0], 1, {{{"db", "1"}, {"load", "2"}}, {}});
    REQUIRE_FALSE(run);
    CHECK(run.error().kind == ErrorKind::bad_input);
    CHECK(run.error().why == "it uses the role 'app', which the machine's profile does not have (it has db, load)");
    CHECK_FALSE(run.error().remedy.empty());
}

TEST_CASE("a made role that its sources can't fill is refused with both numbers") {
    const Experiment e = parsed(full);
    const Result<ResolvedRun> run =
        resolve(e, expand(e)->cells[0], 1, {{{"app", "0"}, {"db", "1"}, {"load", "1"}}, {}});
    REQUIRE_FALSE(run);
    CHECK(run.error().why == "the role 'pair' takes 2 CPUs from db and load, and the machine's profile gives these 1");
}

TEST_CASE("a made role shares CPUs where its sources may, and no further") {
    // `pair` is CPU 10 of db and CPU 12 of load; monitor is on 12, which load may share with it.
    RoleGrants grants = lab;
    grants.roles["monitor"] = "12";
    CHECK(resolved(parsed(full), 0, grants).share == std::vector<std::vector<std::string>>{{"monitor", "pair"}});
    // On CPU 10 it is db that would have to give leave.
    grants.roles["monitor"] = "10";
    grants.share = {{"load", "monitor"}};
    CHECK(resolved(parsed(full), 0, grants).share.empty());
}

TEST_CASE("only roles that the run has are named in its sharing") {
    RoleGrants grants = lab;
    grants.share = {{"app", "otel"}, {"app", "monitor", "otel"}};
    CHECK(resolved(parsed(full), 0, grants).share == std::vector<std::vector<std::string>>{{"app", "monitor"}});
}

TEST_CASE("what a machine must offer is the roles of all cells, made roles by their sources") {
    CHECK(roles_needed(parsed(full)) == std::vector<std::string>{"app", "db", "load"});
    const std::string by_factor =
        "perfrig: 1\nname: a\nfactors: {r: [app, load]}\ntools: {p: {tool: perf-sched-pipe, role: \"${r}\"}}\n";
    CHECK(roles_needed(parsed(by_factor)) == std::vector<std::string>{"app", "load"});
}

TEST_CASE("a cell that is not of this experiment is refused") {
    const Experiment e = parsed(full);
    CHECK_FALSE(resolve(e, Cell{0, {{"connections", "1"}}, ""}, 1, lab));
    CHECK_FALSE(resolve(e, Cell{0, {{"connections", "7"}, {"branch", "keep"}}, ""}, 1, lab));
}
