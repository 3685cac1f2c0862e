// The tables' structs as the API's JSON documents (schemas/openapi.yaml, components). Pure.
#pragma once

#include "common/base/json.hpp"
#include "common/experiment/plan.hpp"
#include "controller/analysis/results_table.hpp"
#include "controller/model/run.hpp"
#include "controller/model/submission.hpp"
#include "controller/queue/waiting.hpp"

#include <map>
#include <string>
#include <vector>

namespace perfrig::api {

Json time_json(std::int64_t utc_ns);
Json time_json(const std::optional<std::int64_t>& utc_ns); // null where there is none
template <class T> Json or_null(const std::optional<T>& value) { return value ? Json(*value) : Json(); }
Json id_or_null(model::Id id);
Json text_or_null(const std::string& text);

Json to_json(const model::Run& run);
Json to_json(const model::Metric& metric);
Json to_json(const model::SeriesInfo& series, const std::map<model::Id, std::string>& machines);
Json to_json(const model::Finding& finding, const std::map<model::Id, std::string>& machines);
Json to_json(const model::Artifact& artifact, const std::map<model::Id, std::string>& machines);
Json to_json(const model::Phase& phase, const std::map<model::Id, std::string>& machines);
Json to_json(const model::Process& process, const std::map<model::Id, std::string>& machines);
Json to_json(const model::Token& token);
Json to_json(const model::Event& event);
Json to_json(const model::Machine& machine);
Json to_json(const analysis::ResultsTable& table); // columns and rows

// What a list shows of a submission.
Json to_json(const model::Submission& submission);
// The rest of one: counts, blocks, current runs, what it waits for, expected end.
struct SubmissionParts {
    model::RunCounts counts;
    std::vector<model::Block> blocks;
    std::vector<model::Run> current_runs;
    std::optional<queue::Waiting> waiting;
};
Json to_json(const model::Submission& submission, const SubmissionParts& parts, std::int64_t now_utc_ns);

} // namespace perfrig::api
