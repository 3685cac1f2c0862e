// A plan as one JSON document: what `perfrig plan --json` prints, the API's answer to a plan, and, without its cells
// and blocks, what is stored of it (schemas/openapi.yaml, Plan). Pure.
#pragma once

#include "common/base/json.hpp"
#include "common/experiment/plan.hpp"

namespace perfrig {

// Lists at most 10,000 cells and 10,000 runs; cell_count and run_count are whole.
Json plan_document(const Experiment& experiment, const Plan& plan);

} // namespace perfrig
