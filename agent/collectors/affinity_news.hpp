// What is new about where watched threads may run: gathered tick by tick, taken by whoever judges it.
#pragma once

#include "common/base/cpu_list.hpp"

#include <map>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace perfrig {

struct ThreadAffinity {
    std::string process, role;
    pid_t pid = 0, tid = 0;
    std::string comm;
    CpuList cpus;  // Cpus_allowed_list
    CpuList nodes; // Mems_allowed_list
};

struct AffinityNews {
    static constexpr std::size_t most_changes = 10'000;

    std::vector<ThreadAffinity> changes;      // of threads seen for the first time, and of those that were moved
    std::map<std::string, std::size_t> looks; // by process: how many times one of its threads was asked
    std::size_t left_out = 0;                 // changes beyond the bound

    void add(ThreadAffinity change) {
        if (changes.size() < most_changes)
            changes.push_back(std::move(change));
        else
            ++left_out;
    }
};

} // namespace perfrig
