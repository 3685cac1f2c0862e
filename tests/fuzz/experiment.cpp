// Any text: it is refused with faults or accepted; what is accepted expands, resolves, and survives being written
// again.
#include "common/experiment/plan.hpp"

#include <cstdint>
#include <cstdlib>

using namespace perfrig;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const YamlOutcome yaml = parse_yaml(text);
    if (!yaml.tree && yaml.faults.empty()) std::abort(); // refused without a word
    if (yaml.tree && yaml.faults.empty()) {
        const YamlOutcome again = parse_yaml(to_yaml(*yaml.tree));
        // Writing may pass the bound on bytes; nothing else may go wrong with what we wrote ourselves.
        if (!again.tree && to_yaml(*yaml.tree).size() <= YamlLimits().most_bytes) std::abort();
        if (again.tree && to_json(*again.tree) != to_json(*yaml.tree)) std::abort();
    }
    const ParseOutcome out = parse_experiment(text);
    if (out.experiment.has_value() != out.faults.empty()) std::abort();
    (void)parse_experiment(text, {"phases.measure=4s", "replicates=1", "order=random"});
    if (!out.experiment) {
        (void)faults_to_json(out.faults).dump();
        return 0;
    }
    Limits limits;
    limits.most_runs = 10'000;
    const Result<Plan> plan = expand(*out.experiment, limits);
    if (!plan) return 0;
    const RoleGrants grants{{{"app", "0-3"}, {"db", "4"}, {"load", "5-6"}, {"monitor", "7"}}, {{"load", "monitor"}}};
    for (std::size_t i = 0; i < plan->cells.size() && i < 4; ++i)
        if (const Result<ResolvedRun> run = resolve(*out.experiment, plan->cells[i], 1, grants))
            if (const auto read = resolved_run_from_json(to_json(*run)); !read || *read != *run) std::abort();
    return 0;
}
