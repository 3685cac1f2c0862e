// Fills in what only the agent knows: ${run.directory} and ${port.NAME}, in every text of a resolved run. Everything
// else was resolved before the run was sent, so any other "${" is plain text (a shell's variable) and stays.
#pragma once

#include "common/experiment/resolved.hpp"

#include <cstdint>

namespace perfrig {

// Name ("run.directory", "port.http") -> text.
using FillIns = std::map<std::string, std::string>;
FillIns fill_ins(const std::string& directory, const std::map<std::string, std::uint16_t>& ports);

std::string fill_in(std::string_view text, const FillIns& values);
ResolvedRun fill_in(ResolvedRun run, const FillIns& values);

} // namespace perfrig
