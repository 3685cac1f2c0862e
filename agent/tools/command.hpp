// command: any program. The experiment declares which numbers of its output are metrics, each with a unit: by a regular
// expression over single lines with one group, or by a JSON pointer into the whole stream. A declared metric that is
// not there is an error of the run; a placeholder (nan, null, "N/A") is a metric without a value and makes it suspect.
#pragma once

#include "agent/tools/tool.hpp"

namespace perfrig {

std::unique_ptr<Tool> make_command(const nlohmann::json& options);

} // namespace perfrig
