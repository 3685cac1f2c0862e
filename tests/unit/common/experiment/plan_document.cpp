#include "common/experiment/plan_document.hpp"

#include "tests/unit/common/experiment/experiments.hpp"

using namespace perfrig;

TEST_CASE("a plan's document has every run in its order, and points into its cells") {
    const Experiment experiment = parsed(with_factors({{"a", {"x", "y"}}, {"b", {"1", "2", "3"}}}));
    const auto plan = expand(experiment);
    REQUIRE(plan);
    const Json document = plan_document(experiment, *plan);
    CHECK(document.at("factors") == Json::parse(R"(["a", "b"])"));
    CHECK(document.at("cell_count") == 6);
    CHECK(document.at("cells").size() == 6);
    CHECK(document.at("cells")[5].at("levels") == Json::parse(R"({"a": "y", "b": "3"})"));
    CHECK(document.at("cells")[5].at("cell_key") == plan->cells[5].key);
    std::size_t runs = 0;
    for (const Json& block : document.at("blocks"))
        for (const Json& run : block.at("runs")) CHECK(run.at("cell") == plan->runs[runs++].cell);
    CHECK(runs == document.at("run_count"));
}
