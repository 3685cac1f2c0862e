// The program's own log, to standard error. One line an event: time in UTC, level, text. Values marked secret never
// get here: redaction happens where secrets enter (common/experiment). What could steer a terminal or forge a line is
// escaped (printable.hpp).
#pragma once

#include <string>
#include <string_view>

namespace perfrig::log {

enum class Level { debug, info, warning, error };

// `program` is printed in each line; level one of debug, info, warning, error.
void start(std::string_view program, Level level);
void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);

} // namespace perfrig::log
