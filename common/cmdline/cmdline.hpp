// Kernel command lines as the kernel itself reads them, and the comparison of what an experiment wants with what
// the running kernel was booted with. Reading only: nothing here edits a boot entry.
//
// Rules, from next_arg() in lib/cmdline.c and parameq() in kernel/params.c of Linux: white space separates, double
// quotes protect it (around the whole argument or the value) and are taken off; "-" and "_" in names are the same;
// what follows a lone "--" belongs to init. A repeated key counts by its last value, except those that add up
// (console, hugepagesz and the like).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

struct KernelArg {
    std::string name;                 // as written
    std::optional<std::string> value; // without its quotes; none for a flag ("quiet")
};

struct KernelCommandLine {
    std::vector<KernelArg> args;        // for the kernel, in order
    std::vector<std::string> init_args; // what follows "--", words as written
};

// Never fails: like the kernel, it reads an unbalanced quote as running to the end of the line.
KernelCommandLine parse_kernel_command_line(std::string_view line);

// "-" becomes "_": two names are the same parameter when these are equal.
std::string canonical_parameter_name(std::string_view name);
// Parameters of which every occurrence counts, not only the last ("console").
bool parameter_adds_up(std::string_view name);

enum class KernelArgState {
    equal,    // it is as wanted
    differs,  // it is there with another value
    missing,  // wanted, not there
    unwanted, // wanted absent, there
};

struct KernelArgComparison {
    std::string name;                  // as the experiment writes it
    std::optional<std::string> wanted; // none: wanted absent; "": wanted as a flag
    std::vector<std::string> found;    // the values of all its occurrences in order; "" for a flag
    KernelArgState state = KernelArgState::equal;
    std::string text; // "spectre_v2_user: wanted on, the kernel was booted with auto"
};

// One entry per wanted parameter, by name. "" asks for the flag and is also equal to "name=".
std::vector<KernelArgComparison> compare_kernel_args(const std::map<std::string, std::optional<std::string>>& wanted,
                                                     const KernelCommandLine& booted);

// The texts of all that isn't equal; empty: go on.
std::vector<std::string> kernel_arg_differences(const std::map<std::string, std::optional<std::string>>& wanted,
                                                std::string_view command_line);

} // namespace perfrig
