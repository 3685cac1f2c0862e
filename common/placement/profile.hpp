// What is particular to a machine: which CPUs each role gets, which roles may share CPUs, limits and allow-lists.
// The agent owns it (its own file) and sends it in hello; the controller keeps a copy and can never widen it. One
// experiment file runs on every machine because it names roles, and the profile turns roles into CPUs.
//
//   {"roles": {"app": "0-3", "db": "4-6", "load": "7-9"}, "memory": {"app": "0"}, "share": [["db", "load"]],
//    "limits": {"run_seconds": 7200, "log_bytes": 67108864, "artifact_bytes": 1073741824, "processes": 4096},
//    "allow": {"settings": [], "kernel_args": []}}
//
// "monitor" is the role whose CPUs the agent itself and its collectors keep to.
#pragma once

#include "common/base/cpu_list.hpp"
#include "common/base/json.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace perfrig {

struct ProfileLimits {
    std::int64_t run_seconds = 4 * 3600;        // one run, all phases; 1 .. 7 days
    std::int64_t log_bytes = 64LL << 20;        // kept per process and stream; 4 KiB .. 16 GiB
    std::int64_t artifact_bytes = 1024LL << 20; // kept per run; 0 .. 1 TiB
    std::int64_t processes = 4096;              // processes and threads of one run; 1 .. 1,000,000
    friend bool operator==(const ProfileLimits&, const ProfileLimits&) = default;
};

struct ProfileAllow {
    std::set<std::string> settings;    // settings that an experiment may change here
    std::set<std::string> kernel_args; // names of kernel parameters that an experiment may ask for here
    friend bool operator==(const ProfileAllow&, const ProfileAllow&) = default;
};

struct Profile {
    std::map<std::string, CpuList> roles;     // role -> CPUs
    std::map<std::string, CpuList> memory;    // role -> memory nodes; a role that isn't here may use all
    std::vector<std::set<std::string>> share; // groups of roles whose CPUs may overlap
    ProfileLimits limits;
    ProfileAllow allow;
    friend bool operator==(const Profile&, const Profile&) = default;
};

// Strict: an unknown member, a wrong type, a bad list, a share group with an unknown role or fewer than two roles are
// errors of kind bad_input whose `on` names the place ("the profile, roles.app"). Missing members take the defaults.
Result<Profile> profile_from_json(const Json& json);
Json to_json(const Profile& profile);

} // namespace perfrig
