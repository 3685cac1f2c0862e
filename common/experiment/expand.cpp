#include "common/base/hash.hpp"
#include "common/experiment/document.hpp"
#include "common/experiment/plan.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace perfrig {

namespace {

using KernelArgs = std::map<std::string, std::optional<std::string>>;

// splitmix64 (Steele, Lea, Flood 2014): the order must be the same on every machine and with every library.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    // Uniform below `bound`: what would favour small remainders is thrown away.
    std::uint64_t below(std::uint64_t bound) {
        while (true)
            if (const std::uint64_t number = next(); number >= -bound % bound) return number % bound;
    }

  private:
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

// One section's reading for every cell, read once per combination.
class SectionOfCells {
  public:
    SectionOfCells(const Section& section, const std::vector<Factor>& factors)
        : section_(section), combinations_(factors, section.factors) {}

    const Parts& of(std::uint64_t cell, const Combinations& cells) {
        const std::uint64_t combination = combinations_.of_cell(cell, cells);
        const auto [entry, added] = known_.try_emplace(combination);
        if (added) {
            Findings found; // the file was checked
            section_.read(combinations_.at(combination), found, entry->second);
        }
        return entry->second;
    }

  private:
    const Section& section_;
    Combinations combinations_;
    std::unordered_map<std::uint64_t, Parts> known_;
};

const Section& section_named(const std::vector<Section>& sections, std::string_view path) {
    return *std::find_if(sections.begin(), sections.end(),
                         [&](const Section& s) { return s.path == path && s.yields; });
}

std::uint64_t seed_of(const Experiment& experiment) {
    if (experiment.seed) return *experiment.seed;
    std::uint64_t seed = 0;
    const std::string& hash = experiment.definition_sha256;
    std::from_chars(hash.data(), hash.data() + std::min<std::size_t>(13, hash.size()), seed, 16); // 52 bits
    return seed;
}

// The cells of one block, in the order of its runs.
void append_runs(Plan& plan, const Experiment& experiment, const std::vector<std::uint32_t>& cells, std::uint32_t block,
                 Random& random) {
    const auto append = [&](std::uint32_t cell, std::uint32_t replicate) {
        plan.runs.push_back({cell, replicate, block, static_cast<std::uint32_t>(plan.runs.size())});
    };
    const auto replicates = static_cast<std::uint32_t>(experiment.replicates);
    if (experiment.order == RunOrder::as_written) {
        for (const std::uint32_t cell : cells)
            for (std::uint32_t replicate = 1; replicate <= replicates; ++replicate) append(cell, replicate);
        return;
    }
    for (std::uint32_t replicate = 1; replicate <= replicates; ++replicate) {
        std::vector<std::uint32_t> order = cells;
        if (experiment.order == RunOrder::random)
            for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
        for (const std::uint32_t cell : order) append(cell, replicate);
    }
}

} // namespace

std::string cell_key(const std::map<std::string, std::string>& levels) {
    return sha256_hex(canonical_json(Json(levels)));
}

Result<Plan> expand(const Experiment& experiment, const Limits& limits) {
    const Combinations cells(experiment.factors, every_index(experiment.factors));
    const std::uint64_t count = cells.size();
    const auto replicates = static_cast<std::uint64_t>(experiment.replicates);
    if (count > limits.most_cells)
        return fail(ErrorKind::bad_input, "expand the experiment", experiment.name,
                    (count == UINT64_MAX ? "more cells than can be counted" : std::to_string(count) + " cells"),
                    "at most " + std::to_string(limits.most_cells) + ": take levels out");
    if (count * replicates > limits.most_runs)
        return fail(ErrorKind::bad_input, "expand the experiment", experiment.name,
                    std::to_string(count * replicates) + " runs",
                    "at most " + std::to_string(limits.most_runs) + ": take levels or replicates out");
    Plan plan;
    plan.needs_confirmation = count >= limits.confirm_cells;
    if (experiment.order == RunOrder::random) plan.seed = seed_of(experiment);

    const std::vector<Section> sections = sections_of(*experiment.tree, experiment.factors);
    SectionOfCells kernel_args(section_named(sections, "kernel_args"), experiment.factors);
    SectionOfCells phases(section_named(sections, "phases"), experiment.factors);
    std::map<KernelArgs, std::uint32_t> block_of;
    std::vector<std::vector<std::uint32_t>> cells_of_block;
    plan.cells.reserve(count);
    for (std::uint32_t ordinal = 0; ordinal < count; ++ordinal) {
        Levels levels = cells.at(ordinal);
        std::string key = cell_key(levels);
        plan.cells.push_back({ordinal, std::move(levels), std::move(key)});
        const KernelArgs& args = kernel_args.of(ordinal, cells).run.kernel_args;
        const auto [entry, added] = block_of.emplace(args, static_cast<std::uint32_t>(cells_of_block.size()));
        if (added) {
            plan.blocks.push_back({entry->second, args, 0, 0});
            cells_of_block.emplace_back();
        }
        cells_of_block[entry->second].push_back(ordinal);
        const ResolvedRun& run = phases.of(ordinal, cells).run;
        const double run_seconds = static_cast<double>(run.warm_up_ms + run.pause_ms + run.measure_ms) / 1000;
        plan.expected_seconds += static_cast<double>(replicates) * (run_seconds + plan.overhead_seconds);
        if (run.measure_ms == 0) plan.expected_is_lower_bound = true;
    }
    if (const YamlNode* build = experiment.tree->find("build"); build && !build->items.empty())
        plan.expected_is_lower_bound = true;

    Random random(plan.seed);
    plan.runs.reserve(count * replicates);
    for (PlannedBlock& block : plan.blocks) {
        block.first_run = static_cast<std::uint32_t>(plan.runs.size());
        append_runs(plan, experiment, cells_of_block[block.ordinal], block.ordinal, random);
        block.run_count = static_cast<std::uint32_t>(plan.runs.size()) - block.first_run;
    }
    return plan;
}

} // namespace perfrig
