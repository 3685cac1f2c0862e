// The agent's configuration: its file (agent.yaml), overridden by environment (PERFRIG_AGENT_...), overridden by flags.
// Every fault of the file is reported at once, with its place.
//
//   controller: http://127.0.0.1:7117      name: xeon            labels: {cpu: cascade-lake}
//   state_dir: /var/lib/perfrig-agent      user: perfrig         workload_user: perfrig-work
//   profile: {roles: {app: "0-3", load: "4-7", monitor: "8"}, share: [[load, monitor]]}
#pragma once

#include "agent/session/link.hpp"
#include "agent/session/spool.hpp"
#include "common/experiment/fault.hpp"
#include "common/net/url.hpp"
#include "common/placement/profile.hpp"

#include <map>
#include <optional>
#include <string>

namespace perfrig {

struct AgentConfig {
    std::string file;       // where it was read from; empty: no file
    std::string controller; // URL; may be empty for doctor and work
    std::string name;       // of the machine; the host's name where none is given
    std::map<std::string, std::string> labels;
    std::string token;      // else read from token_file
    std::string token_file; // default: STATE_DIR/token
    std::string state_dir;
    std::string work_dir;            // where runs get their directories; default: STATE_DIR/work
    std::string user, workload_user; // needed where root starts the agent
    std::string metrics_listen = "127.0.0.1:9464";
    std::string log_level = "info";
    std::string search_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"; // PATH of workloads
    NetworkPolicy during_measure = NetworkPolicy::live;
    SpoolLimits spool;
    Profile profile;
};

inline constexpr const char* default_config_file = "/etc/perfrig/agent.yaml";

// What flags and environment say: name of the setting ("state_dir") -> text.
using ConfigOverrides = std::map<std::string, std::string>;
// The settings that can be overridden so; the variable of "state_dir" is PERFRIG_AGENT_STATE_DIR.
const std::vector<std::string>& overridable_settings();
ConfigOverrides overrides_from_environment();

// `text`: the file's content; pure but for the defaults of this host (its name, whether we are root).
Result<AgentConfig> parse_config(std::string_view text, const std::string& file, const ConfigOverrides& overrides);
// `file` empty: /etc/perfrig/agent.yaml where there is one, else no file.
Result<AgentConfig> load_config(std::string file, const ConfigOverrides& overrides);

// The configuration that `perfrig up` wrote for this user (PERFRIG_DIR, else its own default); "" where there is none.
std::string config_of_up();

// The token itself: given, or from its file. Files that others may read are refused.
Result<std::string> agent_token(const AgentConfig& config);
// Plain HTTP goes to loopback only, until TLS exists.
Result<Url> controller_url(const std::string& text);

} // namespace perfrig
