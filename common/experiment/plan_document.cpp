#include "common/experiment/plan_document.hpp"

#include <algorithm>

namespace perfrig {

Json plan_document(const Experiment& experiment, const Plan& plan) {
    constexpr std::size_t most_shown = 10'000;
    Json factors = Json::array(), cells = Json::array(), blocks = Json::array();
    for (const auto& factor : experiment.factors) factors.push_back(factor.name);
    for (std::size_t i = 0; i < std::min(plan.cells.size(), most_shown); ++i)
        cells.push_back({{"cell_key", plan.cells[i].key}, {"levels", plan.cells[i].levels}});
    for (const auto& block : plan.blocks) {
        Json kernel_args = Json::object(), runs = Json::array();
        for (const auto& [name, value] : block.kernel_args) kernel_args[name] = value ? Json(*value) : Json();
        for (std::size_t i = block.first_run; i < std::min<std::size_t>(block.first_run + block.run_count, most_shown);
             ++i)
            runs.push_back({{"cell", plan.runs[i].cell}, {"replicate", plan.runs[i].replicate}});
        blocks.push_back({{"kernel_args", kernel_args}, {"run_count", block.run_count}, {"runs", runs}});
    }
    return {{"experiment", experiment.name},
            {"factors", factors},
            {"order", to_string(experiment.order)},
            {"seed", plan.seed},
            {"cell_count", plan.cells.size()},
            {"run_count", plan.runs.size()},
            {"roles_needed", roles_needed(experiment)},
            {"expected_seconds", plan.expected_seconds},
            {"overhead_seconds", plan.overhead_seconds},
            {"expected_is_lower_bound", plan.expected_is_lower_bound},
            {"needs_confirmation", plan.needs_confirmation},
            {"cells", cells},
            {"blocks", blocks}};
}

} // namespace perfrig
