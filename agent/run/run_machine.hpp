// What every run needs of this machine and this agent; made once by main.
#pragma once

#include "agent/collectors/collector_set.hpp"
#include "agent/helper/client.hpp"
#include "agent/run/artifact_store.hpp"
#include "agent/run/event_sink.hpp"
#include "agent/run/sampler.hpp"
#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/placement/profile.hpp"

#include <string>

namespace perfrig {

struct RunMachine {
    FileTree tree;
    const Clock& clock;
    HelperClient& helper;
    CollectorSet& collectors;
    Sampler& sampler;
    EventSink& sink;
    ArtifactStore artifacts;
    Profile profile;
    std::string log_folder;             // for what processes print while the run lives
    std::string cgroup_summary;         // for the environment: what the helper found
    std::string search_path;            // PATH of what runs start
    std::string thread_source = "proc"; // where the collectors read switches: "taskstats" or "proc"
    CpuList monitor_cpus() const {
        const auto found = profile.roles.find("monitor");
        return found == profile.roles.end() ? CpuList() : found->second;
    }
};

} // namespace perfrig
