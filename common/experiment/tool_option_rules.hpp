// The second half of check_tool_options, private to it: what a tool's options demand of each other, which no table
// says.
#pragma once

#include "common/base/json.hpp"
#include "common/experiment/tool_options.hpp"

#include <optional>

namespace perfrig {

// Adds the faults to those of the table's check; tolerates values that were faulty there. `options` is an object.
void check_tool_rules(std::string_view tool, const Json& options, std::vector<OptionFault>& faults);

namespace option_values {

bool left_to_agent(const Json& value);              // text with a ${...} in it
std::optional<double> number_of(const Json& value); // a number, or text that is one
std::string shown(double value);                    // whole numbers without a point

} // namespace option_values

} // namespace perfrig
