// The results table (schemas/openapi.yaml, Results) as people and programs want it. Pure: the document in, text out.
//
// For people: medians with three significant digits, one unit a column; where several replicates gave a rate or a time,
// half of their range behind "±"; a cell without a value shows why, never a zero. Below the table: cells whose
// replicates differ widely, then what was found, gravest first: each kind once, with its runs. Remarks (info) are only
// counted.
// For programs: SI units in the column's name, every column, nothing in place of a missing value.
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <string>

namespace perfrig::report {

std::string results_as_table(const Json& results, bool colours); // aligned columns, units in the header
std::string results_as_markdown(const Json& results);
// RFC 4180. One row a cell: factors, n, findings (above info), outcome, then of each column KEY.median, .min, .max and
// .n: "requests_per_second.median [1/s]".
std::string results_as_csv(const Json& results);
// RFC 4180. One row a replicate (its last attempt): run, factors, replicate, attempt, state, verdict, findings, reason,
// then the columns: "requests_per_second [1/s]". Runs that no median rests on have no values.
std::string results_as_csv_of_runs(const Json& results);
// One test case a run for Jenkins: failures carry the reason; voided runs are failures, refused ones skipped; what was
// found of it is its system-out. `runs` is the list of /submissions/{id}/runs.
std::string results_as_junit(const Json& results, const Json& runs);

} // namespace perfrig::report
