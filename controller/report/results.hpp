// The results table (schemas/openapi.yaml, Results) as people and programs want it. Pure: the document in, text out.
// Values keep enough digits to be held against the raw figures; a cell without a value shows why, never a zero.
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <string>

namespace perfrig::report {

std::string results_as_table(const Json& results, bool colours); // aligned columns, units in the header
std::string results_as_markdown(const Json& results);
std::string results_as_csv(const Json& results); // RFC 4180, one row a cell, medians in SI units, every column
// One test case a run for Jenkins: failures carry the reason; voided runs are failures, refused ones skipped.
// `runs` is the list of /submissions/{id}/runs.
std::string results_as_junit(const Json& results, const Json& runs);

} // namespace perfrig::report
