// Enrols this machine: trades a join token for the agent's own, which goes to its file (0600), owned by the agent's
// user.
#pragma once

#include "agent/setup/config.hpp"

namespace perfrig {

struct Joined {
    std::string machine, token_file;
};
Result<Joined> join(const AgentConfig& config, const std::string& join_token);

} // namespace perfrig
