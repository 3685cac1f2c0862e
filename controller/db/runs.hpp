// Runs and what is known of them. Writers of single facts (as run events bring them) are in run_facts.hpp.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/db/page.hpp"
#include "controller/model/run.hpp"

#include <optional>
#include <vector>

namespace perfrig::db::runs {

Result<model::Run> get(Connection& c, model::Id run); // with its resolved definition; not_found

struct Filter {
    model::Id submission = 0;
    model::Id machine = 0;
    model::Id block = 0;
    std::string experiment; // its name; empty: any
    std::optional<model::RunState> state;
    bool open_only = false;
};
Result<Page<model::Run>> list(Connection& c, const Filter& filter, PageRequest page);
// Every run of a submission in order of cell, replicate, attempt, without resolved.
Result<std::vector<model::Run>> of_submission(Connection& c, model::Id submission);

// Moves the run on, where it has not ended. `deadline_in` by which the next state must come (none for end states).
// Ended by the controller rather than by the agent: cancelled before it began, interrupted by a revoked lease.
enum class Moved { yes, already_there, already_ended };
Result<Moved> change_state(Connection& c, model::Id run, model::RunState state, std::string_view reason,
                           std::optional<Milliseconds> deadline_in, std::string_view actor);
Result<void> set_verdict(Connection& c, model::Id run, model::Verdict verdict);

Result<std::vector<model::RunMachine>> machines(Connection& c, model::Id run);
Result<std::vector<model::Phase>> phases(Connection& c, model::Id run);
Result<std::vector<model::Process>> processes(Connection& c, model::Id run);
Result<std::vector<model::Metric>> metrics(Connection& c, model::Id run);
Result<std::vector<model::Finding>> findings(Connection& c, model::Id run);
Result<std::vector<model::SeriesInfo>> series(Connection& c, model::Id run);
// Metrics and findings of every run of a submission, by run id.
struct RunMetric {
    model::Id run = 0;
    model::Metric metric;
};
Result<std::vector<RunMetric>> metrics_of_submission(Connection& c, model::Id submission);
Result<std::vector<model::Finding>> findings_of_submission(Connection& c, model::Id submission);

// Ended runs whose records are not sealed or evaluated yet (a controller died in between, late frames came), oldest
// first.
Result<std::vector<model::Id>> unsealed(Connection& c, int limit);

} // namespace perfrig::db::runs
