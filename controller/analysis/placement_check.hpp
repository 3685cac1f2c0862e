// Did every process run where it was put? What the kernel gave, read back during measure, against the grant: outside it
// the run is void (placement_outside_grant), narrower is a finding that names both lists, not read back is a warning.
// Roles that share CPUs are a finding in every run.
#pragma once

#include "controller/analysis/derived.hpp"

namespace perfrig::analysis {

Evaluation check_placement(const RunData& data);

// Everything there is: placement and derived metrics.
Evaluation evaluate(const RunData& data);

} // namespace perfrig::analysis
