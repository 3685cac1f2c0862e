#include "controller/cli/submit.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/base/units.hpp"
#include "common/experiment/plan_document.hpp"
#include "controller/cli/exit_codes.hpp"
#include "controller/report/text.hpp"

#include <iostream>
#include <iterator>

namespace perfrig::cli {

namespace {

constexpr std::size_t most_definition_bytes = 1 << 20; // as the API takes

Result<std::string> read_definition(const std::string& file) {
    if (file != "-") return read_file(file, most_definition_bytes);
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (text.size() > most_definition_bytes)
        return fail(ErrorKind::bad_input, "read the experiment", "standard input", "it is larger than 1 MiB");
    return text;
}

struct Checked {
    ParseOutcome outcome;
    int exit = exit_good;
};

// Reads and checks; prints every fault.
Checked check(const SubmitOptions& options, bool json) {
    const auto text = read_definition(options.file);
    if (!text) {
        std::cerr << text.error().text() << "\n";
        return {{}, exit_bad_input};
    }
    Checked checked{parse_experiment(*text, options.overrides), exit_good};
    if (checked.outcome.faults.empty()) return checked;
    checked.exit = exit_bad_input;
    if (json) {
        std::cout << Json{{"valid", false}, {"faults", faults_to_json(checked.outcome.faults)}}.dump(2) << "\n";
        return checked;
    }
    const std::string name = options.file == "-" ? "standard input" : options.file;
    for (const Fault& fault : checked.outcome.faults) std::cerr << fault.text(name) << "\n";
    std::cerr << checked.outcome.faults.size() << (checked.outcome.faults.size() == 1 ? " fault" : " faults") << "\n";
    return checked;
}

std::string levels_text(const Experiment& experiment, const Cell& cell) {
    std::string out;
    for (const Factor& factor : experiment.factors)
        out += (out.empty() ? "" : " ") + factor.name + "=" + cell.levels.at(factor.name);
    return out.empty() ? "(one cell)" : out;
}

void print_plan(const Experiment& experiment, const Plan& plan) {
    constexpr std::uint32_t most_lines = 200; // of each block; the rest is counted
    std::cout << experiment.name << ": " << plan.cells.size() << (plan.cells.size() == 1 ? " cell, " : " cells, ")
              << plan.runs.size() << (plan.runs.size() == 1 ? " run in " : " runs in ") << plan.blocks.size()
              << (plan.blocks.size() == 1 ? " block, " : " blocks, ") << to_string(experiment.order);
    if (experiment.order == RunOrder::random) std::cout << " (seed " << plan.seed << ")";
    std::cout << ", " << (plan.expected_is_lower_bound ? "at least " : "about ")
              << format_duration(Nanoseconds(static_cast<std::int64_t>(plan.expected_seconds) * 1'000'000'000)) << "\n";
    for (const PlannedBlock& block : plan.blocks) {
        std::cout << "block " << block.ordinal + 1;
        if (block.kernel_args.empty()) std::cout << " (any boot)";
        for (const auto& [key, value] : block.kernel_args)
            std::cout << " " << (value ? key + (value->empty() ? "" : "=" + *value) : "without " + key);
        std::cout << "\n";
        for (std::uint32_t i = 0; i < block.run_count && i < most_lines; ++i) {
            const PlannedRun& run = plan.runs[block.first_run + i];
            std::cout << "  " << block.first_run + i + 1 << "  " << levels_text(experiment, plan.cells[run.cell])
                      << "  replicate " << run.replicate << "\n";
        }
        if (block.run_count > most_lines) std::cout << "  ... and " << block.run_count - most_lines << " more\n";
    }
    if (plan.needs_confirmation) std::cout << "that many cells are queued only with --yes\n";
}

} // namespace

int exit_code_of(const Error& error) {
    switch (error.kind) {
    case ErrorKind::bad_input:
    case ErrorKind::not_found:
    case ErrorKind::conflict:
    case ErrorKind::forbidden: return exit_bad_input;
    default: return exit_infrastructure;
    }
}

int validate(const SubmitOptions& options, bool json) {
    const Checked checked = check(options, json);
    if (checked.exit != exit_good) return checked.exit;
    if (json)
        std::cout << Json{{"valid", true}, {"experiment", checked.outcome.experiment->name}}.dump(2) << "\n";
    else
        std::cout << options.file << ": " << checked.outcome.experiment->name << " is good\n";
    return exit_good;
}

int plan(const SubmitOptions& options, bool json) {
    const Checked checked = check(options, json);
    if (checked.exit != exit_good) return checked.exit;
    const auto plan = expand(*checked.outcome.experiment);
    if (!plan) {
        std::cerr << plan.error().text() << "\n";
        return exit_bad_input;
    }
    if (json)
        std::cout << plan_document(*checked.outcome.experiment, *plan).dump(2) << "\n";
    else
        print_plan(*checked.outcome.experiment, *plan);
    return exit_good;
}

Result<Json> submit(const Client& client, const SubmitOptions& options) {
    PERFRIG_TRY(std::string text, read_definition(options.file));
    // Checked here first, with the file's name at every place; the controller checks again.
    if (const ParseOutcome outcome = parse_experiment(text, options.overrides); !outcome.faults.empty()) {
        std::string places;
        for (const Fault& fault : outcome.faults) places += "\n  " + fault.text(options.file);
        return fail(ErrorKind::bad_input, "queue", options.file, "it has faults:" + places);
    }
    Json body = {{"definition", text},           {"file", options.file},     {"overrides", options.overrides},
                 {"priority", options.priority}, {"source", options.source}, {"confirm", options.yes}};
    const std::string key = options.idempotency_key.empty() ? "cli-" + random_hex(16) : options.idempotency_key;
    return client.post("/api/v1/submissions", body, {{"Idempotency-Key", key}});
}

} // namespace perfrig::cli
