// A computer with an agent, and the tokens by which people and agents are known. Ids are the database's; times are UTC
// nanoseconds since 1970 from the database's clock (microseconds are its resolution).
#pragma once

#include "common/base/json.hpp"
#include "controller/model/states.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace perfrig::model {

using Id = std::int64_t; // 0: none

struct Machine {
    Id id = 0;
    std::string name; // ^[a-z0-9][a-z0-9._-]{0,62}$
    Json labels = Json::object();
    Json profile = Json::object(); // as the agent sent it (common/placement/profile.hpp)
    MachineState state = MachineState::enrolling;
    std::string state_reason;
    MachineState previous_state = MachineState::idle; // what it was before it became unreachable
    std::string boot_id;
    std::int64_t agent_epoch = 0;
    std::string agent_version;
    std::string metrics_url; // where Prometheus may scrape the agent; empty: nowhere
    std::optional<std::int64_t> clock_offset_ns, clock_offset_error_ns;
    std::optional<std::int64_t> last_seen_utc_ns;
    std::int64_t created_utc_ns = 0;
    Id environment_id = 0; // taken at the last hello
    bool forgotten = false;
};

// A typed description of a machine at a moment; the fingerprint is the SHA-256 of facts' canonical text.
struct Environment {
    Id id = 0;
    Id machine_id = 0;
    std::string boot_id;
    std::int64_t taken_utc_ns = 0;
    std::string fingerprint;
    Json facts = Json::object();
    Json raw = Json::object();
};

// Only the hash (SHA-256 of the token's text, hex) is known.
struct Token {
    std::string hash;
    TokenKind kind = TokenKind::user;
    std::string label;
    Id machine_id = 0; // of an agent's token
    std::string machine_name;
    std::int64_t created_utc_ns = 0;
    std::optional<std::int64_t> revoked_utc_ns;
};

} // namespace perfrig::model
