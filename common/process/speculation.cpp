#include "common/process/speculation.hpp"

#include "common/base/unique_fd.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace perfrig {

namespace {

int kernel_number(SpeculationKind kind) {
    return kind == SpeculationKind::indirect_branch ? PR_SPEC_INDIRECT_BRANCH : PR_SPEC_STORE_BYPASS;
}

unsigned long kernel_number(SpeculationWish wish) {
    if (wish == SpeculationWish::enable) return PR_SPEC_ENABLE;
    return wish == SpeculationWish::disable ? PR_SPEC_DISABLE : PR_SPEC_FORCE_DISABLE;
}

std::string state_words(int state) {
    if (state < 0) return std::string("unknown (") + std::strerror(-state) + ")";
    if (state == PR_SPEC_NOT_AFFECTED) return "the CPU is not affected";
    std::string text;
    if (state & PR_SPEC_ENABLE)
        text = "speculation enabled";
    else if (state & PR_SPEC_FORCE_DISABLE)
        text = "speculation disabled by force";
    else if (state & PR_SPEC_DISABLE)
        text = "speculation disabled";
    else
        text = "state " + std::to_string(state);
    return text + ((state & PR_SPEC_PRCTL) ? " for this process" : " for every process, whatever it asks");
}

} // namespace

std::string_view to_string(SpeculationKind kind) {
    return kind == SpeculationKind::indirect_branch ? "indirect_branch" : "store_bypass";
}

std::string_view to_string(SpeculationWish wish) {
    if (wish == SpeculationWish::enable) return "enable";
    return wish == SpeculationWish::disable ? "disable" : "force_disable";
}

std::string_view to_string(SpeculationResult result) {
    switch (result) {
    case SpeculationResult::applied: return "applied";
    case SpeculationResult::no_change: return "no_change";
    case SpeculationResult::not_permitted: return "not_permitted";
    case SpeculationResult::not_possible: return "not_possible";
    case SpeculationResult::not_valid: return "not_valid";
    case SpeculationResult::unknown: break;
    }
    return "unknown";
}

Result<SpeculationWish> parse_speculation_wish(std::string_view text) {
    for (const auto wish : {SpeculationWish::enable, SpeculationWish::disable, SpeculationWish::force_disable})
        if (text == to_string(wish)) return wish;
    return fail(ErrorKind::bad_input, "read the speculation control", std::string(text), "no such control",
                "write enable, disable or force_disable");
}

SpeculationResult speculation_result(SpeculationWish wish, int set_error, int state) {
    switch (set_error) {
    case 0: break;
    case EPERM: return SpeculationResult::not_permitted;
    case ENXIO: return SpeculationResult::not_possible;
    case ERANGE: return SpeculationResult::not_valid;
    default: return SpeculationResult::unknown;
    }
    if (state < 0) return SpeculationResult::unknown;
    // Speculation enabled is what "enable" asks for, also where no process could ask for anything else.
    const bool controlled = (state & PR_SPEC_PRCTL) != 0 || wish == SpeculationWish::enable;
    const bool as_asked = (static_cast<unsigned long>(state) & kernel_number(wish)) != 0;
    return controlled && as_asked ? SpeculationResult::applied : SpeculationResult::no_change;
}

SpeculationVerdict judge_speculation(SpeculationKind kind, SpeculationWish wish, int set_error, int state) {
    const SpeculationResult result = speculation_result(wish, set_error, state);
    std::string words;
    switch (result) {
    case SpeculationResult::applied: words = "set"; break;
    case SpeculationResult::no_change: words = "the kernel accepted it and changed nothing"; break;
    case SpeculationResult::not_permitted:
        words =
            "the kernel does not permit it (EPERM): this boot's mitigation is off or forced for every process, or an "
            "earlier force_disable can't be undone";
        break;
    case SpeculationResult::not_possible:
        words = "the kernel offers no such control for this CPU and boot (ENXIO)";
        break;
    case SpeculationResult::not_valid: words = "the kernel does not know this value of the control (ERANGE)"; break;
    case SpeculationResult::unknown:
        words = set_error == 0 ? "the kernel accepted it, but its state can't be read back"
                : set_error == EINVAL || set_error == ENODEV
                    ? "this kernel or CPU has no such control"
                    : std::string("the kernel answered: ") + std::strerror(set_error);
        break;
    }
    return {result, state,
            std::string(to_string(kind)) + ": " + std::string(to_string(wish)) + ": " + words +
                " (state: " + state_words(state) + ")"};
}

int set_speculation(SpeculationKind kind, SpeculationWish wish) {
    return ::prctl(PR_SET_SPECULATION_CTRL, kernel_number(kind), kernel_number(wish), 0, 0) == 0 ? 0 : errno;
}

int get_speculation(SpeculationKind kind) {
    const int state = ::prctl(PR_GET_SPECULATION_CTRL, kernel_number(kind), 0, 0, 0);
    return state < 0 ? -errno : state;
}

Result<SpeculationVerdict> probe_speculation(SpeculationKind kind, SpeculationWish wish) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "make a pipe", "");
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) return fail_errno(errno, "fork a child to try", std::string(to_string(kind)));
    if (child == 0) {
        const int answers[2] = {set_speculation(kind, wish), get_speculation(kind)};
        ::_exit(::write(ends[1], answers, sizeof answers) == sizeof answers ? 0 : 1);
    }
    to.reset();
    int answers[2] = {};
    ssize_t got = 0;
    do got = ::read(from.get(), answers, sizeof answers);
    while (got < 0 && errno == EINTR);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (got != sizeof answers)
        return fail(ErrorKind::internal, "try the speculation control", std::string(to_string(kind)),
                    "the child that tried it gave no answer");
    return judge_speculation(kind, wish, answers[0], answers[1]);
}

SpeculationLines parse_speculation_lines(std::string_view status) {
    SpeculationLines lines;
    while (!status.empty()) {
        const auto end = status.find('\n');
        std::string_view line = status.substr(0, end);
        status.remove_prefix(end == std::string_view::npos ? status.size() : end + 1);
        const auto value = [&](std::string_view key) -> std::optional<std::string> {
            if (!line.starts_with(key)) return std::nullopt;
            line.remove_prefix(key.size());
            const auto first = line.find_first_not_of(" \t");
            return std::string(first == std::string_view::npos ? "" : line.substr(first));
        };
        if (auto text = value("Speculation_Store_Bypass:"))
            lines.store_bypass = std::move(text);
        else if (auto branch = value("SpeculationIndirectBranch:"))
            lines.indirect_branch = std::move(branch);
    }
    return lines;
}

Result<SpeculationLines> read_speculation_lines(const FileTree& tree, pid_t pid) {
    PERFRIG_TRY(const std::string status, tree.read("/proc/" + std::to_string(pid) + "/status"));
    return parse_speculation_lines(status);
}

} // namespace perfrig
