// Per-process control of speculation by prctl(PR_SET_SPECULATION_CTRL), as Linux documents it in
// Documentation/userspace-api/spec_ctrl.rst. What may be asked for, what the kernel answered, and what that means.
// A process may ask only where the kernel leaves the choice to processes ("conditional"); under a forced mode prctl
// returns success and changes nothing, which is told apart here by reading the state back.
#pragma once

#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace perfrig {

enum class SpeculationKind { indirect_branch, store_bypass };  // PR_SPEC_INDIRECT_BRANCH, PR_SPEC_STORE_BYPASS
enum class SpeculationWish { enable, disable, force_disable }; // of the speculation, not of the mitigation
enum class SpeculationResult {
    applied,       // the state read back is what was asked for
    no_change,     // the kernel said yes, and the state is another, or the same for every process whatever it asks
    not_permitted, // EPERM: mitigation off, or forced, or an earlier force_disable that can't be undone
    not_possible,  // ENXIO: this control does not exist for this CPU and boot
    not_valid,     // ERANGE: the kernel knows the control, not the wish
    unknown,       // EINVAL, ENODEV: a kernel or CPU without this control
};

std::string_view to_string(SpeculationKind kind);     // "indirect_branch"
std::string_view to_string(SpeculationWish wish);     // "force_disable"
std::string_view to_string(SpeculationResult result); // "not_permitted"
Result<SpeculationWish> parse_speculation_wish(std::string_view text);

struct SpeculationAsk {
    std::optional<SpeculationWish> indirect_branch;
    std::optional<SpeculationWish> store_bypass;
    bool empty() const { return !indirect_branch && !store_bypass; }
};

struct SpeculationVerdict {
    SpeculationResult result = SpeculationResult::unknown;
    int state = -1;    // what PR_GET_SPECULATION_CTRL answered afterwards (bits of spec_ctrl.rst); negative: -errno
    std::string words; // one sentence for people
    bool granted() const { return result == SpeculationResult::applied; }
};

// Pure and async-signal-safe: what answers of the two prctl calls amount to.
SpeculationResult speculation_result(SpeculationWish wish, int set_error, int state);
// The same with words: what answers of the two prctl calls mean. `set_error` is errno of the set (0: success), `state`
// as above.
SpeculationVerdict judge_speculation(SpeculationKind kind, SpeculationWish wish, int set_error, int state);
// Forks a throw-away child that asks and reads back: says what would happen to a process. Safe in threaded programs.
Result<SpeculationVerdict> probe_speculation(SpeculationKind kind, SpeculationWish wish);
// The two raw calls, on the calling thread; async-signal-safe. 0 or errno; state or -errno.
int set_speculation(SpeculationKind kind, SpeculationWish wish);
int get_speculation(SpeculationKind kind);

// The lines of /proc/PID/status, raw; nullopt where the kernel prints none (unknown, not off).
struct SpeculationLines {
    std::optional<std::string> store_bypass;    // "Speculation_Store_Bypass: thread vulnerable"
    std::optional<std::string> indirect_branch; // "SpeculationIndirectBranch: conditional enabled"
};
SpeculationLines parse_speculation_lines(std::string_view status);
Result<SpeculationLines> read_speculation_lines(const FileTree& tree, pid_t pid);

} // namespace perfrig
