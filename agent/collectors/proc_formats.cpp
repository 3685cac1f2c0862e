#include "agent/collectors/proc_formats.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace perfrig {

namespace {

Error broken(std::string_view format, std::string_view why, std::string_view text) {
    std::string shown;
    for (const char c : text.substr(0, 60)) shown += c >= ' ' && c <= '~' ? c : '?';
    return fail(ErrorKind::bad_input, "understand " + std::string(format), "'" + shown + "'", std::string(why));
}

// Numbers separated by blanks, taken one by one; nothing where the next word is no number.
class Numbers {
  public:
    explicit Numbers(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

    template <class T> std::optional<T> next() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
        T value{};
        const auto [end, error] = std::from_chars(at_, end_, value);
        if (error != std::errc{} || (end != end_ && *end != ' ' && *end != '\t' && *end != '\n')) return std::nullopt;
        at_ = end;
        return value;
    }
    bool skip_words(int count) {
        for (int i = 0; i < count; ++i) {
            while (at_ != end_ && *at_ == ' ') ++at_;
            if (at_ == end_ || *at_ == '\n') return false;
            while (at_ != end_ && *at_ != ' ' && *at_ != '\n') ++at_;
        }
        return true;
    }
    // At the end of the line, and of the text but for one newline.
    bool finished() const {
        const char* at = at_;
        while (at != end_ && *at == ' ') ++at;
        return at == end_ || (*at == '\n' && at + 1 == end_);
    }

  private:
    const char* at_;
    const char* end_;
};

template <class T> bool take(Numbers& in, T& into) {
    const auto value = in.next<T>();
    if (value) into = *value;
    return value.has_value();
}

// The rest of the line after "\nKEY:" from `from` on; `from` moves there. Nothing where the key is missing.
std::optional<std::string_view> line_after(std::string_view text, std::string_view newline_key, std::size_t& from) {
    const auto at = text.find(newline_key, from);
    if (at == std::string_view::npos) return std::nullopt;
    std::size_t start = at + newline_key.size();
    while (start < text.size() && (text[start] == '\t' || text[start] == ' ')) ++start;
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return std::nullopt; // cut off in the middle of the line
    from = end;
    return text.substr(start, end - start);
}

template <class T> Result<T> single(std::string_view text, std::string_view format) {
    Numbers in(text);
    const auto value = in.next<T>();
    if (!value || !in.finished()) return broken(format, "it is not one number", text);
    return *value;
}

} // namespace

Result<StatLine> parse_stat(std::string_view text) {
    constexpr std::string_view format = "the format of /proc/PID/stat";
    StatLine out;
    const auto open = text.find('(');
    const auto close = text.rfind(')'); // names may hold parentheses and spaces
    if (open == std::string_view::npos || close == std::string_view::npos || close < open || open < 2)
        return broken(format, "no name in parentheses", text);
    const auto pid = single<std::int64_t>(text.substr(0, open - 1), format);
    if (!pid || text[open - 1] != ' ') return broken(format, "no pid in front of the name", text);
    out.pid = *pid;
    out.comm = text.substr(open + 1, close - open - 1);
    if (text.size() < close + 4 || text[close + 1] != ' ' || text[close + 3] != ' ')
        return broken(format, "no state behind the name", text);
    out.state = text[close + 2];
    Numbers in(text.substr(close + 4));
    const bool good = take(in, out.parent) && take(in, out.process_group) && in.skip_words(8) &&
                      take(in, out.user_ticks) && take(in, out.system_ticks);
    std::int64_t children_user = 0, children_system = 0; // printed as signed
    if (!good || !take(in, children_user) || !take(in, children_system) || children_user < 0 || children_system < 0 ||
        !in.skip_words(4) || !take(in, out.start_ticks))
        return broken(format, "fields are missing or no numbers", text.substr(close + 1));
    out.children_user_ticks = static_cast<std::uint64_t>(children_user);
    out.children_system_ticks = static_cast<std::uint64_t>(children_system);
    return out;
}

Result<SchedStat> parse_schedstat(std::string_view text) {
    SchedStat out;
    Numbers in(text);
    if (!take(in, out.cpu_ns) || !take(in, out.run_queue_wait_ns) || !take(in, out.timeslices) || !in.finished())
        return broken("the format of /proc/PID/schedstat", "it is not three numbers", text);
    return out;
}

Result<StatusFields> parse_status(std::string_view text) {
    constexpr std::string_view format = "the format of /proc/PID/status";
    StatusFields out;
    constexpr std::string_view name_key = "Name:\t";
    std::size_t at = text.find('\n');
    if (!text.starts_with(name_key) || at == std::string_view::npos)
        return broken(format, "it doesn't begin with the name", text);
    out.name = text.substr(name_key.size(), at - name_key.size());
    // The lines stand in this order; the name, which a program chooses, is the first, and holds no newline.
    const auto cpus = line_after(text, "\nCpus_allowed_list:", at);
    if (!cpus) return broken(format, "no line Cpus_allowed_list", text);
    out.cpus_allowed = *cpus;
    if (const auto mems = line_after(text, "\nMems_allowed_list:", at)) out.mems_allowed = *mems;
    const auto voluntary = line_after(text, "\nvoluntary_ctxt_switches:", at);
    const auto involuntary = voluntary ? line_after(text, "\nnonvoluntary_ctxt_switches:", at) : std::nullopt;
    if (!involuntary) return broken(format, "no lines with context switches", text);
    PERFRIG_TRY(out.voluntary_switches, single<std::uint64_t>(*voluntary, format));
    PERFRIG_TRY(out.involuntary_switches, single<std::uint64_t>(*involuntary, format));
    return out;
}

std::string unescaped_name(std::string_view name) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const char next = name[i] == '\\' && i + 1 < name.size() ? name[i + 1] : '\0';
        if (next == 'n' || next == '\\') {
            out += next == 'n' ? '\n' : '\\';
            ++i;
        } else {
            out += name[i];
        }
    }
    return out;
}

Result<std::vector<CpuTimes>> parse_proc_stat(std::string_view text) {
    constexpr std::string_view format = "the format of /proc/stat";
    std::vector<CpuTimes> out;
    if (!text.starts_with("cpu ")) return broken(format, "it doesn't begin with the line of all CPUs", text);
    for (std::size_t at = 0;;) {
        at = text.find('\n', at);
        if (at == std::string_view::npos || ++at + 3 > text.size() || text.substr(at, 3) != "cpu") return out;
        const std::size_t end = text.find('\n', at);
        if (end == std::string_view::npos) return broken(format, "a line is cut off", text.substr(at));
        Numbers in(text.substr(at + 3, end - at - 3));
        CpuTimes cpu;
        if (!take(in, cpu.cpu) || cpu.cpu < 0 || !take(in, cpu.user) || !take(in, cpu.nice) || !take(in, cpu.system) ||
            !take(in, cpu.idle))
            return broken(format, "a CPU's line has too few numbers", text.substr(at, end - at));
        for (std::uint64_t* later : {&cpu.iowait, &cpu.irq, &cpu.softirq, &cpu.steal}) // came in 2.5.41 to 2.6.11
            if (!in.finished() && !take(in, *later))
                return broken(format, "a field is no number", text.substr(at, end - at));
        out.push_back(cpu);
    }
}

Result<std::map<std::string_view, std::uint64_t>> parse_meminfo(std::string_view text) {
    constexpr std::string_view format = "the format of /proc/meminfo";
    std::map<std::string_view, std::uint64_t> out;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return broken(format, "the last line is cut off", text);
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || colon == 0) return broken(format, "a line has no name", line);
        const bool kilobytes = line.ends_with(" kB");
        const auto value =
            single<std::uint64_t>(line.substr(colon + 1, line.size() - colon - 1 - (kilobytes ? 3 : 0)), format);
        if (!value || *value > UINT64_MAX / 1024) return broken(format, "a line has no number", line);
        out[line.substr(0, colon)] = kilobytes ? *value * 1024 : *value;
    }
    if (out.empty()) return broken(format, "it is empty", text);
    return out;
}

Result<std::uint64_t> parse_statm_resident_pages(std::string_view text) {
    Numbers in(text);
    std::uint64_t total = 0, resident = 0;
    if (!take(in, total) || !take(in, resident))
        return broken("the format of /proc/PID/statm", "it is not a row of numbers", text);
    return resident;
}

Result<std::uint64_t> parse_single_number(std::string_view text) {
    return single<std::uint64_t>(text, "a file of one number");
}

Result<std::vector<std::int64_t>> parse_pid_lines(std::string_view text) {
    std::vector<std::int64_t> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        PERFRIG_TRY(const std::int64_t pid, single<std::int64_t>(text.substr(0, end), "the format of cgroup.procs"));
        if (pid < 0) return broken("the format of cgroup.procs", "a negative pid", text.substr(0, end));
        if (pid > 0) out.push_back(pid); // 0: a process outside this pid namespace
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

Result<std::int64_t> parse_last_pid(std::string_view loadavg) {
    const std::size_t space = loadavg.find_last_of(' ');
    if (space == std::string_view::npos) return broken("the format of /proc/loadavg", "no last pid", loadavg);
    return single<std::int64_t>(loadavg.substr(space + 1), "the format of /proc/loadavg");
}

} // namespace perfrig
