// pgbench: PostgreSQL load. The password, if the connection string has one, goes by environment and not by argument,
// where any user of the machine could read it.
#pragma once

#include "agent/tools/pgbench_report.hpp"
#include "agent/tools/tool.hpp"

namespace perfrig {

class OptionValues;

std::unique_ptr<Tool> make_pgbench(const OptionValues& options);

// The output as a whole; rate_asked is the open loop's, per second. Pure.
Result<Reading> read_pgbench(const ToolOutput& output, std::optional<double> rate_asked);

} // namespace perfrig
