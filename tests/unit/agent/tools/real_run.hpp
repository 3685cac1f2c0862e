// Runs an adapter's command for real and keeps both streams apart. For tests of tools that end by themselves.
#pragma once

#include "agent/tools/tool.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace perfrig::testing {

struct RealRun {
    std::string out = {}, err = {};
    int exit_code = 0;
    ToolOutput output() const { return {.out = out, .err = err, .exit_code = exit_code}; }
};

inline std::string quoted(const std::string& s) {
    std::string result = "'";
    for (const char c : s) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

inline RealRun run_real(const ToolInvocation& call) {
    char folder[] = "/tmp/perfrig-tool-XXXXXX";
    if (!mkdtemp(folder)) return {.err = "mkdtemp failed", .exit_code = 255};
    const std::string base = folder;
    for (const auto& file : call.files) std::ofstream(base + "/" + file.name) << file.content;
    std::string line = "cd " + quoted(base) + " && exec timeout 20 env";
    for (const auto& [name, value] : call.environment) line += " " + quoted(name + "=" + value);
    for (const auto& argument : call.argv) line += " " + quoted(argument);
    const int status = std::system(("(" + line + ") >" + base + "/.out 2>" + base + "/.err </dev/null").c_str());
    RealRun result;
    const auto slurp = [&](const char* name) {
        std::ostringstream text;
        text << std::ifstream(base + name).rdbuf();
        return text.str();
    };
    result.out = slurp("/.out");
    result.err = slurp("/.err");
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    std::filesystem::remove_all(base);
    return result;
}

inline bool installed(const char* program) {
    return std::system((std::string("command -v ") + program + " >/dev/null 2>&1").c_str()) == 0;
}

} // namespace perfrig::testing
