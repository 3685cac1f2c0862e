#include "common/experiment/plan.hpp"

#include "tests/unit/common/experiment/experiments.hpp"

#include <algorithm>
#include <random>
#include <set>

using namespace perfrig;

namespace {

using Factors = std::vector<std::pair<std::string, std::vector<std::string>>>;

Factors random_factors(std::mt19937& random) {
    Factors out;
    for (unsigned f = 0, n = random() % 4; f < n; ++f) {
        std::vector<std::string> levels;
        for (unsigned l = 0, m = 1 + random() % 5; l < m; ++l) levels.push_back("l" + std::to_string(l));
        out.emplace_back("f" + std::to_string(f), levels);
    }
    return out;
}

Plan plan_of(const Experiment& e) {
    Result<Plan> plan = expand(e);
    REQUIRE(plan);
    return *std::move(plan);
}

std::string order_of(const Plan& plan) {
    std::string out;
    for (const PlannedRun& run : plan.runs) out += std::to_string(run.cell) + "." + std::to_string(run.replicate) + " ";
    return out;
}

} // namespace

TEST_CASE("cells are the cross product, the first factor slowest") {
    const Plan plan = plan_of(parsed(with_factors({{"a", {"x", "y"}}, {"b", {"1", "2", "3"}}})));
    std::string order;
    for (const Cell& cell : plan.cells) order += cell.levels.at("a") + cell.levels.at("b") + " ";
    CHECK(order == "x1 x2 x3 y1 y2 y3 ");
    CHECK(plan.cells[4].ordinal == 4);
}

TEST_CASE("without factors there is one cell without levels") {
    const Plan plan = plan_of(parsed(with_factors({})));
    CHECK(plan.cells.size() == 1);
    CHECK(plan.cells[0].levels.empty());
    CHECK(plan.runs.size() == 1);
}

TEST_CASE("interleaved goes through all cells replicate by replicate, as written repeats each cell") {
    const Factors factors{{"a", {"x", "y"}}};
    CHECK(order_of(plan_of(parsed(with_factors(factors, "replicates: 3\n")))) == "0.1 1.1 0.2 1.2 0.3 1.3 ");
    CHECK(order_of(plan_of(parsed(with_factors(factors, "replicates: 3\norder: as-written\n")))) ==
          "0.1 0.2 0.3 1.1 1.2 1.3 ");
}

TEST_CASE("whatever the factors' shape, every cell has every replicate exactly once, in the order asked for") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        const Factors factors = random_factors(random);
        const unsigned replicates = 1 + random() % 4;
        const char* order = std::vector{"interleaved", "random", "as-written"}[random() % 3];
        const Plan plan = plan_of(
            parsed(with_factors(factors, "replicates: " + std::to_string(replicates) + "\norder: " + order + "\n")));
        std::size_t cells = 1;
        for (const auto& [name, levels] : factors) cells *= levels.size();
        REQUIRE(plan.cells.size() == cells);
        REQUIRE(plan.runs.size() == cells * replicates);
        std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
        std::set<std::string> keys;
        for (const Cell& cell : plan.cells) keys.insert(cell.key);
        CHECK(keys.size() == cells);
        for (std::size_t i = 0; i < plan.runs.size(); ++i) {
            const PlannedRun& run = plan.runs[i];
            REQUIRE(run.position == i);
            REQUIRE(run.cell < cells);
            seen.insert({run.cell, run.replicate});
            if (order == std::string("as-written"))
                REQUIRE((run.cell == i / replicates && run.replicate == i % replicates + 1));
            else
                REQUIRE(run.replicate == i / cells + 1);
            if (order == std::string("interleaved")) REQUIRE(run.cell == i % cells);
        }
        CHECK(seen.size() == plan.runs.size());
        CHECK(plan.blocks.size() == 1);
        CHECK(plan.blocks[0].run_count == plan.runs.size());
    }
}

TEST_CASE("the same seed gives the same order, another seed another, and no seed follows from the definition") {
    const Factors factors{{"a", {"1", "2", "3", "4", "5", "6", "7", "8"}}};
    const auto order = [&](const std::string& head) {
        return order_of(plan_of(parsed(with_factors(factors, "order: random\nreplicates: 2\n" + head))));
    };
    CHECK(order("seed: 7\n") == order("seed: 7\n"));
    CHECK(order("seed: 7\n") != order("seed: 8\n"));
    CHECK(order("") == order(""));
    CHECK(order("") != order("description: other\n"));
    // The algorithm itself is part of the promise: an order can be had again years later.
    CHECK(order("seed: 7\n") == "1.1 4.1 5.1 2.1 6.1 0.1 3.1 7.1 1.2 2.2 4.2 0.2 3.2 5.2 7.2 6.2 ");
}

TEST_CASE("a random order favours no place") {
    const Factors factors{{"a", {"1", "2", "3", "4"}}};
    const Plan plan = plan_of(parsed(with_factors(factors, "order: random\nreplicates: 1000\nseed: 3\n")));
    std::vector<int> first(4);
    for (std::size_t i = 0; i < plan.runs.size(); i += 4) ++first[plan.runs[i].cell];
    for (const int count : first) CHECK(std::abs(count - 250) < 60); // more than 4 standard deviations
}

TEST_CASE("a cell's key depends on its levels alone, not on the order of the factors or on other levels") {
    const Plan one = plan_of(parsed(with_factors({{"a", {"x", "y"}}, {"b", {"1", "2"}}})));
    const Plan other = plan_of(parsed(with_factors({{"b", {"0", "2"}}, {"a", {"z", "y"}}}, "replicates: 3\n")));
    CHECK(one.cells[3].levels == other.cells[3].levels);
    CHECK(one.cells[3].key == other.cells[3].key);
    CHECK(one.cells[0].key != one.cells[1].key);
    CHECK(cell_key({{"a", "x"}}) == "bac82bcae3ff0e486fd02d6dce53dc6444bcbd21f6ab5dea0a69e86e8b723b7f");
}

TEST_CASE("runs of one boot state stand together in one block") {
    const std::string text = with_factors({{"a", {"x", "y"}}}, "replicates: 2\nkernel_args: {k: \"${s}\", q: null}\n");
    std::string more = text;
    more.replace(more.find("factors:\n"), 9, "factors:\n  s: [\"on\", \"off\"]\n");
    const Plan plan = plan_of(parsed(more));
    REQUIRE(plan.blocks.size() == 2);
    CHECK(plan.blocks[0].kernel_args ==
          std::map<std::string, std::optional<std::string>>{{"k", "on"}, {"q", std::nullopt}});
    CHECK(plan.blocks[1].first_run == 4);
    CHECK(plan.blocks[1].run_count == 4);
    CHECK(order_of(plan) == "0.1 1.1 0.2 1.2 2.1 3.1 2.2 3.2 ");
    for (const PlannedRun& run : plan.runs) CHECK(run.block == run.position / 4);
}

TEST_CASE("the expected time adds up phases that differ by cell, and the overhead of each run") {
    std::string text = with_factors({{"a", {"2s", "10s"}}}, "replicates: 3\n");
    text.replace(text.find("measure: 2s"), 11, "warm_up: 1s, measure: \"${a}\"");
    const Plan plan = plan_of(parsed(text));
    CHECK(plan.expected_seconds == doctest::Approx(3 * (1 + 2) + 3 * (1 + 10) + 6 * plan.overhead_seconds));
    CHECK_FALSE(plan.expected_is_lower_bound);
}

TEST_CASE("from 10,000 cells on a plan wants confirmation, and beyond the caps nothing is expanded") {
    std::vector<std::string> hundred;
    for (int i = 0; i < 100; ++i) hundred.push_back(std::to_string(i));
    const Experiment e = parsed(with_factors({{"a", hundred}, {"b", hundred}}));
    CHECK(plan_of(e).needs_confirmation);
    CHECK_FALSE(plan_of(parsed(with_factors({{"a", hundred}}))).needs_confirmation);
    const Result<Plan> refused = expand(e, Limits{9'999, 1'000'000, 100});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::bad_input);
    CHECK(refused.error().text().find("10000 cells") != std::string::npos);
    CHECK_FALSE(expand(e, Limits{1'000'000, 9'999, 100}));
}
