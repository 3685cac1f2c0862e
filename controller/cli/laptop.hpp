// `perfrig up` and `perfrig down`: the whole of perfrig on this machine, in one folder, without root. Root may call it
// too; then the database and the controller run as `user`, the agent drops to it, and workloads run as `workload_user`.
//
//   FOLDER/client.json      where the controller is and which token to use: what the other commands read
//   FOLDER/up.json          the processes that run, by pid and start time, so that down never hits a stranger
//   FOLDER/postgres/        the private cluster          FOLDER/tokens/   user, scrape (0600)
//   FOLDER/agent.yaml       this machine's profile: yours to edit; up never overwrites it
//   FOLDER/agent/           the agent's state            FOLDER/logs/     what the programs said
#pragma once

#include "common/base/result.hpp"

#include <string>

namespace perfrig::cli {

struct LaptopOptions {
    std::string folder;
    std::string programs; // where perfrig-controller and perfrig-agent are
    std::string listen = "127.0.0.1:7117";
    std::string metrics_listen = "127.0.0.1:9464";
    std::string machine = "local";
    std::string user = "perfrig"; // these two only where root calls
    std::string workload_user = "perfrig-work";
};

// ~/.local/state/perfrig (XDG_STATE_HOME is heeded), /var/lib/perfrig for root, or PERFRIG_DIR.
std::string default_folder();

// Returns what to tell the user. Whatever is up already is left as it is.
Result<std::string> up(const LaptopOptions& options);
// Ends agent, controller and database, in that order; data stays unless `forget`. Down without up is fine.
Result<std::string> down(const std::string& folder, bool forget);

} // namespace perfrig::cli
