#include "common/cmdline/cmdline.hpp"

#include <algorithm>
#include <array>

namespace perfrig {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

// The next word with quotes protecting white space, quotes still in it; advances `at`.
std::string_view next_word(std::string_view line, std::size_t& at) {
    while (at < line.size() && is_space(line[at])) ++at;
    const std::size_t start = at;
    bool quoted = false;
    while (at < line.size() && (quoted || !is_space(line[at]))) {
        if (line[at] == '"') quoted = !quoted;
        ++at;
    }
    return line.substr(start, at - start);
}

KernelArg split(std::string_view word) {
    const bool whole_quoted = word.starts_with('"');
    if (whole_quoted) {
        word.remove_prefix(1);
        if (word.ends_with('"')) word.remove_suffix(1);
    }
    KernelArg arg;
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) { // the kernel takes "=x" for a name
        arg.name = word;
        return arg;
    }
    arg.name = word.substr(0, equals);
    std::string_view value = word.substr(equals + 1);
    if (value.starts_with('"')) {
        value.remove_prefix(1);
        if (value.ends_with('"')) value.remove_suffix(1);
    }
    arg.value = std::string(value);
    return arg;
}

std::string shown(std::string_view value) { return value.empty() ? "the bare flag" : std::string(value); }

std::string shown_all(const std::vector<std::string>& values) {
    std::string out;
    for (const std::string& value : values) out += (out.empty() ? "" : ", ") + shown(value);
    return values.size() > 1 ? out + " (in this order)" : out;
}

void decide(KernelArgComparison& c) {
    if (!c.wanted) {
        if (c.found.empty()) return;
        c.state = KernelArgState::unwanted;
        c.text = c.name + ": wanted absent, the kernel was booted with " + shown_all(c.found);
        return;
    }
    if (c.found.empty()) {
        c.state = KernelArgState::missing;
        c.text = c.name + ": wanted " + shown(*c.wanted) + ", the kernel was booted without it";
        return;
    }
    const bool any = parameter_adds_up(c.name) && std::find(c.found.begin(), c.found.end(), *c.wanted) != c.found.end();
    if (any || c.found.back() == *c.wanted) return;
    c.state = KernelArgState::differs;
    c.text = c.name + ": wanted " + shown(*c.wanted) + ", the kernel was booted with " + shown_all(c.found);
}

} // namespace

KernelCommandLine parse_kernel_command_line(std::string_view line) {
    KernelCommandLine out;
    bool for_init = false;
    for (std::size_t at = 0;;) {
        const std::string_view word = next_word(line, at);
        if (word.empty()) return out;
        if (for_init)
            out.init_args.emplace_back(word);
        else if (word == "--")
            for_init = true;
        else
            out.args.push_back(split(word));
    }
}

std::string canonical_parameter_name(std::string_view name) {
    std::string out(name);
    std::replace(out.begin(), out.end(), '-', '_');
    return out;
}

bool parameter_adds_up(std::string_view name) {
    static constexpr std::array<std::string_view, 10> names = {
        "console", "earlycon",   "hugepages", "hugepagesz",   "memmap",
        "initrd",  "netconsole", "rd.lvm.lv", "rd.luks.uuid", "module_blacklist"};
    return std::find(names.begin(), names.end(), canonical_parameter_name(name)) != names.end();
}

std::vector<KernelArgComparison> compare_kernel_args(const std::map<std::string, std::optional<std::string>>& wanted,
                                                     const KernelCommandLine& booted) {
    std::vector<KernelArgComparison> out;
    for (const auto& [name, value] : wanted) {
        KernelArgComparison c{name, value, {}, KernelArgState::equal, name + ": as wanted"};
        const std::string canonical = canonical_parameter_name(name);
        for (const KernelArg& arg : booted.args)
            if (canonical_parameter_name(arg.name) == canonical) c.found.push_back(arg.value.value_or(""));
        decide(c);
        out.push_back(std::move(c));
    }
    return out;
}

std::vector<std::string> kernel_arg_differences(const std::map<std::string, std::optional<std::string>>& wanted,
                                                std::string_view command_line) {
    std::vector<std::string> out;
    for (KernelArgComparison& c : compare_kernel_args(wanted, parse_kernel_command_line(command_line)))
        if (c.state != KernelArgState::equal) out.push_back(std::move(c.text));
    return out;
}

} // namespace perfrig
