// Runs and what is known of them. Writers of single facts (as run events bring them) are in run_facts.hpp.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/db/page.hpp"
#include "controller/model/run.hpp"

#include <optional>
#include <set>
#include <vector>

namespace perfrig::db::runs {

Result<model::Run> get(Connection& c, model::Id run); // with its resolved definition; not_found

struct Filter {
    model::Id submission = 0;
    std::string machine; // its name, also of a forgotten one; empty: any
    model::Id block = 0;
    std::string experiment; // its name; empty: any
    std::optional<model::RunState> state;
    bool open_only = false;
};
Result<Page<model::Run>> list(Connection& c, const Filter& filter, PageRequest page);
// A submission's runs in the order of the work (retries behind what they retry), those behind the run `after` (0: from
// the first), at most `limit`, without resolved. More tells whether there are others behind them.
struct RunsInOrder {
    std::vector<model::Run> items;
    bool more = false;
};
Result<RunsInOrder> in_order(Connection& c, model::Id submission, model::Id after, int limit);
// Its runs that are neither planned nor ended, under way first, then those that wait for their turn in their block.
Result<std::vector<model::Run>> current(Connection& c, model::Id submission, int limit);
Result<std::vector<model::Run>> of_cells(Connection& c, const std::vector<model::Id>& cells); // by id
Result<std::vector<model::Run>> by_ids(Connection& c, const std::vector<model::Id>& runs);    // by id

// Moves the run on, where it has not ended; bad_input where the state can't follow the one that it is in. `deadline_in`
// by which the next state must come; where it is none or not positive, the state's longest stay (model/states.hpp).
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
// Of several runs, by run id.
struct RunMetric {
    model::Id run = 0;
    model::Metric metric;
};
Result<std::vector<RunMetric>> metrics_of(Connection& c, const std::vector<model::Id>& runs);
// The names of their tools: of the processes that measure began with.
Result<std::set<std::string>> tools_of(Connection& c, const std::vector<model::Id>& runs);
// Those above info, without evidence.
Result<std::vector<model::Finding>> grave_findings_of(Connection& c, const std::vector<model::Id>& runs);

// Ended runs whose records are not sealed or evaluated yet (a controller died in between, late frames came), oldest
// first.
Result<std::vector<model::Id>> unsealed(Connection& c, int limit);

} // namespace perfrig::db::runs
