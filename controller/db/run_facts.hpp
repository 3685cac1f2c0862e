// Writers of single facts about a run, as its events bring them. All of them can be given the same fact twice.
#pragma once

#include "common/protocol/run_event.hpp"
#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <span>

namespace perfrig::db::facts {

Result<void> put_roles(Connection& c, model::Id run, model::Id machine,
                       const std::map<std::string, std::string>& roles);
Result<void> put_environment(Connection& c, model::Id run, model::Id machine, const protocol::EnvironmentTaken& taken);
Result<void> start_phase(Connection& c, model::Id run, const model::Phase& phase);
Result<void> end_phase(Connection& c, model::Id run, model::Id machine, int ordinal, std::int64_t end_ns);
Result<void> put_series(Connection& c, model::Id run, std::span<const model::SeriesInfo> series);
Result<void> start_process(Connection& c, model::Id run, const model::Process& process);
Result<void> observe_process(Connection& c, model::Id run, model::Id machine, int ordinal, std::string_view cpus,
                             std::string_view nodes);
Result<void> end_process(Connection& c, model::Id run, model::Id machine, int ordinal, std::int64_t ended_ns,
                         std::string_view exit);
Result<void> put_metrics(Connection& c, model::Id run, std::span<const model::Metric> metrics); // by name and labels
Result<void> add_findings(Connection& c, std::span<const model::Finding> findings);
// What evaluation made before is taken away (metrics of source derived, findings of source analysis).
Result<void> clear_evaluation(Connection& c, model::Id run);

} // namespace perfrig::db::facts
