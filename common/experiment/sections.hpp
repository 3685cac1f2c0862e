// The parts of an experiment file, each read by itself from a tree in which nothing is left to fill in: kernel_args,
// roles, build, one service, one tool, phases. The validator reads a part once for each combination of the factors
// that it mentions, and resolve() reads all of them for one cell: both see the same code. Pure.
#pragma once

#include "common/experiment/resolved.hpp"
#include "common/experiment/yaml_reader.hpp"

#include <set>

namespace perfrig {

// Where the readers put what they find beside the value itself.
struct Findings {
    std::vector<Fault> faults;
    std::set<std::string> secrets;
};

// A role that the experiment makes from roles of the profile: the first `cpus` CPUs of those that `from` grants.
struct RoleRecipe {
    std::vector<std::string> from;
    int cpus = 1;
    friend bool operator==(const RoleRecipe&, const RoleRecipe&) = default;
};

struct BuildPart {
    std::vector<Command> commands;
    std::string role;
    std::int64_t within_ms = 600'000;
};

struct ToolPart {
    ToolSpec spec;
    bool ends_by_itself = false; // needs no duration
};

struct PhasesPart {
    std::int64_t warm_up_ms = 0;
    std::int64_t pause_ms = 0;
    std::int64_t measure_ms = 0; // 0: not given
};

constexpr std::size_t least_secret_bytes = 4;

bool is_name(std::string_view text); // of roles, services, tools, ports: a-z, 0-9, _ and -, from a letter; at most 63
bool is_variable(std::string_view text);   // of the environment
bool is_inner_path(std::string_view text); // relative, without "..", "." or empty parts, at most 255 bytes

std::map<std::string, std::optional<std::string>> read_kernel_args(const YamlNode& node, Findings& out);
std::map<std::string, RoleRecipe> read_roles(const YamlNode& node, Findings& out);
// `in` reads the document: the keys build, build_role and build_within.
BuildPart read_build(YamlReader& in, Findings& out);
ServiceSpec read_service(const std::string& name, const YamlNode& node, Findings& out);
ToolPart read_tool(const std::string& name, const YamlNode& node, Findings& out);
PhasesPart read_phases(const YamlNode& node, Findings& out);
// What a tool demands of the phases that it runs in.
void check_durations(const ToolPart& tool, const PhasesPart& phases, const YamlNode& document, Findings& out);

// Shared by services, tools and the build.
Command read_command_line(YamlReader& in, Findings& out); // keys command, environment, directory
std::vector<std::string> read_argv(YamlReader& in, const YamlNode& node, const std::string& path);
std::map<std::string, std::string> read_environment(YamlReader& in, Findings& out);
Speculation read_speculation(YamlReader& in);
std::string read_role(YamlReader& in);
std::int64_t read_milliseconds(YamlReader& in, const char* key, std::int64_t fallback, std::int64_t most);

} // namespace perfrig
