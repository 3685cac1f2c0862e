// The agent's /metrics: built from the collectors' last picture, the spool's and the link's figures, so that a scrape
// reads nothing of /proc however often it comes. Only who holds a scrape token of the controller's may read it.
#pragma once

#include "agent/collectors/snapshot.hpp"
#include "agent/run/work_status.hpp"
#include "agent/session/link_figures.hpp"
#include "agent/session/spool.hpp"
#include "common/net/http_types.hpp"

#include <string>
#include <vector>

namespace perfrig {

struct OwnFigures {
    double cpu_seconds = 0;         // user and system, since the start
    double peak_resident_bytes = 0; // getrusage: the highest so far
};
OwnFigures read_own_figures();

// Pure: the text in Prometheus' format.
std::string agent_exposition(const ProcessSnapshot& snapshot, const WorkStatus::View& work, const SpoolFigures& spool,
                             const LinkFigures& link, const OwnFigures& own, const std::string& version);

// 401 without or with a wrong token; hashes are SHA-256 in hex.
bool may_scrape(const HttpRequest& request, const std::vector<std::string>& token_hashes);

// scrape.json in the state directory: the hashes outlive a restart while the controller is away.
std::vector<std::string> load_scrape_hashes(const std::string& file);
Result<void> save_scrape_hashes(const std::string& file, const std::vector<std::string>& hashes);

} // namespace perfrig
