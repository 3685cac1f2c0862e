#include "tests/unit/agent/helper/support.hpp"

using namespace perfrig;
using namespace perfrig::test;

TEST_CASE("an agent that begins runs and never ends them is refused more, until it ends one") {
    Bench bench;
    std::vector<RunGuard> guards;
    std::int64_t begun = 0;
    Result<RunGuard> last = bench.client->begin_run({++begun, 1}, soon());
    for (; last && begun < 100; last = bench.client->begin_run({++begun, 1}, soon()))
        guards.push_back(std::move(*last));
    REQUIRE_FALSE(last);
    CHECK(last.error().kind == ErrorKind::conflict);
    CHECK(last.error().text().find("begun and not ended") != std::string::npos);
    CHECK(guards.size() == 16);

    CHECK(guards.front().end(soon())); // its guardian's end alone is not the run's
    CHECK_FALSE(bench.client->begin_run({begun, 1}, soon()));
    CHECK(bench.client->end_run(1, true, soon()));
    CHECK(bench.client->begin_run({begun, 1}, soon()));
}
