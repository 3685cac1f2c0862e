// Arguments in words for people: where the parser of command lines would name its own insides (types, subcommands,
// conversions), these say what was wrong, with what would do.
#pragma once

#include "controller/cli/show.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace perfrig::cli {

void add_format(CLI::App& command, Format& format);
CLI::Option* add_submission_id(CLI::App& command, std::int64_t& id, const std::string& help);
void add_priority(CLI::App& command, int& priority);

// Why the command line could not be taken: one line, with the nearest known word where one is misspelt.
std::string refusal_of_arguments(const CLI::App& app, const CLI::ParseError& error);

} // namespace perfrig::cli
