// Everything about an experiment file from the command line: check it, show its plan, queue it, follow it to its table.
#pragma once

#include "controller/cli/client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace perfrig::cli {

struct SubmitOptions {
    std::string file;                   // "-": standard input
    std::vector<std::string> overrides; // PATH=VALUE
    int priority = 0;
    bool yes = false; // to 10,000 cells or more
    std::string source = "cli";
    std::string idempotency_key; // empty: one is made up, so that a repeated request is not a second submission
};

// These two need no controller. `json`: for programs.
int validate(const SubmitOptions& options, bool json);
int plan(const SubmitOptions& options, bool json);

// Queues it and returns the submission's document.
Result<Json> submit(const Client& client, const SubmitOptions& options);

// Exit codes of the command line (README): what a failed call or a bad definition is worth to the caller's script.
int exit_code_of(const Error& error);

} // namespace perfrig::cli
