// The pure readers of the inventory: text of one file in, values out.
#include "agent/host/inventory.hpp"
#include "common/cmdline/cmdline.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

namespace perfrig {

namespace {

constexpr std::string_view white = " \t\r";

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(white);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(white) - first + 1);
}

// Calls f(key, value) for every line "key : value".
void each_pair(std::string_view text, char separator,
               const std::function<void(std::string_view, std::string_view)>& f) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (const auto at = line.find(separator); at != std::string_view::npos)
            f(trimmed(line.substr(0, at)), trimmed(line.substr(at + 1)));
    }
}

template <class T> std::optional<T> whole_number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

bool has_word(std::string_view words, std::string_view word) {
    for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
    }
    return false;
}

} // namespace

CpuIdentity parse_cpuinfo(std::string_view text) {
    CpuIdentity id;
    const auto first_text = [](std::optional<std::string>& into, std::string_view value) {
        if (!into && !value.empty()) into = std::string(value);
    };
    const auto first_number = [](std::optional<std::int64_t>& into, std::string_view value) {
        if (!into) into = whole_number<std::int64_t>(value);
    };
    each_pair(text, ':', [&](std::string_view key, std::string_view value) {
        if (key == "vendor_id" || key == "CPU implementer")
            first_text(id.vendor, value);
        else if (key == "model name" || key == "Model Name" || key == "cpu model" || key == "uarch")
            first_text(id.model, value);
        else if (key == "microcode")
            first_text(id.microcode, value);
        else if (key == "cpu family")
            first_number(id.family, value);
        else if (key == "model")
            first_number(id.model_number, value);
        else if (key == "stepping")
            first_number(id.stepping, value);
        else if (key == "flags")
            id.hypervisor = id.hypervisor || has_word(value, "hypervisor");
    });
    return id;
}

Result<std::uint64_t> parse_memory_total_bytes(std::string_view meminfo) {
    std::optional<std::uint64_t> kilobytes;
    each_pair(meminfo, ':', [&](std::string_view key, std::string_view value) {
        if (key == "MemTotal" && value.ends_with(" kB"))
            kilobytes = whole_number<std::uint64_t>(value.substr(0, value.size() - 3));
    });
    if (!kilobytes || *kilobytes > UINT64_MAX / 1024)
        return fail(ErrorKind::bad_input, "read the size of the memory", "/proc/meminfo", "no line MemTotal in kB");
    return *kilobytes * 1024;
}

std::map<std::string, std::string> speculation_status_lines(std::string_view status) {
    std::map<std::string, std::string> out;
    each_pair(status, ':', [&](std::string_view key, std::string_view value) {
        if (key.starts_with("Speculation")) out.emplace(key, value);
    });
    return out;
}

std::map<std::string, std::string> parse_os_release(std::string_view text) {
    std::map<std::string, std::string> out;
    each_pair(text, '=', [&](std::string_view key, std::string_view value) {
        if (key.empty() || key.starts_with('#')) return;
        const bool quoted =
            value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front();
        out.emplace(key, quoted ? value.substr(1, value.size() - 2) : value);
    });
    return out;
}

std::string shareable_command_line(std::string_view line) {
    static constexpr std::array<std::string_view, 14> naming = {
        "ip",         "BOOTIF",   "ifname", "nfsaddrs",         "nfsroot",  "netconsole",         "nameserver",
        "rd.peerdns", "rd.route", "vlan",   "systemd.hostname", "hostname", "rd.iscsi.initiator", "netroot"};
    std::string out;
    const KernelCommandLine parsed = parse_kernel_command_line(line);
    const auto add = [&out](std::string_view word) { out += (out.empty() ? "" : " ") + std::string(word); };
    for (const KernelArg& arg : parsed.args) {
        if (arg.name == "perfrig.boot") continue; // marks one boot
        const bool removed = arg.value && std::find(naming.begin(), naming.end(), arg.name) != naming.end();
        const std::string value = removed ? "(removed)" : arg.value.value_or("");
        const bool quote = value.find(' ') != std::string::npos;
        add(!arg.value ? arg.name : arg.name + "=" + (quote ? "\"" + value + "\"" : value));
    }
    if (!parsed.init_args.empty()) add("--");
    for (const std::string& word : parsed.init_args) add(word);
    return out;
}

} // namespace perfrig
