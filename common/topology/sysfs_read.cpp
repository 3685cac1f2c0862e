#include "common/topology/sysfs_read.hpp"

#include <charconv>

namespace perfrig::sysfs {

namespace {

constexpr std::string_view white = " \t\n";

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(white);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(white) - first + 1);
}

Error not_understood(std::string_view what, std::string_view text) {
    return fail(ErrorKind::bad_input, "read " + std::string(what), "'" + std::string(text.substr(0, 80)) + "'",
                "it has another shape");
}

// Reads `path` and hands its text to `parse`; an error of that gets the path in front.
template <class Parse> auto read_as(const FileTree& tree, const std::string& path, Parse parse) {
    using Value = typename decltype(parse(std::string_view{}))::value_type;
    using Out = Result<std::optional<Value>>;
    const auto text = tree.read(path);
    if (!text || text->empty()) return Out(std::optional<Value>{});
    auto value = parse(std::string_view(*text));
    if (value) return Out(std::optional<Value>(*std::move(value)));
    Error error = std::move(value).error();
    error.on = tree.real_path(path) + " " + error.on;
    return Out(std::move(error));
}

Result<std::int64_t> parse_number(std::string_view text) {
    const std::string_view digits = trimmed(text);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return not_understood("a number", text);
    return value;
}

} // namespace

Result<CpuList> parse_list(std::string_view text) {
    text = trimmed(text);
    if (text == "(null)") return CpuList{};
    return CpuList::parse(text);
}

Result<CpuList> parse_mask(std::string_view text) {
    text = trimmed(text);
    CpuList list;
    int base = 0;
    while (!text.empty()) { // words from the right
        const auto comma = text.rfind(',');
        const std::string_view word = comma == std::string_view::npos ? text : text.substr(comma + 1);
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(0, comma);
        std::uint32_t bits = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bits, 16);
        if (error != std::errc{} || end != word.data() + word.size()) return not_understood("a CPU mask", word);
        for (int bit = 0; bit < 32; ++bit)
            if (bits >> bit & 1) {
                if (base + bit >= CpuList::most_cpus) return not_understood("a CPU mask", word);
                list.add(base + bit);
            }
        base += 32;
    }
    return list;
}

Result<std::optional<std::uint64_t>> parse_node_memory_bytes(std::string_view text) {
    constexpr std::string_view key = "MemTotal:";
    const auto at = text.find(key);
    if (at == std::string_view::npos) return std::optional<std::uint64_t>{};
    std::string_view line = text.substr(at + key.size());
    line = trimmed(line.substr(0, line.find('\n')));
    std::uint64_t kilobytes = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), kilobytes);
    if (error != std::errc{} ||
        std::string_view(end, static_cast<std::size_t>(line.data() + line.size() - end)) != " kB" ||
        kilobytes > UINT64_MAX / 1024)
        return not_understood("a node's memory", line);
    return std::optional<std::uint64_t>(kilobytes * 1024);
}

Result<std::optional<std::int64_t>> number(const FileTree& tree, const std::string& path) {
    return read_as(tree, path, parse_number);
}
Result<std::optional<CpuList>> list(const FileTree& tree, const std::string& path) {
    return read_as(tree, path, parse_list);
}
Result<std::optional<CpuList>> mask(const FileTree& tree, const std::string& path) {
    return read_as(tree, path, parse_mask);
}
Result<std::optional<std::uint64_t>> node_memory_bytes(const FileTree& tree, const std::string& path) {
    PERFRIG_TRY(auto value, read_as(tree, path, parse_node_memory_bytes));
    return value ? *value : std::optional<std::uint64_t>{};
}

} // namespace perfrig::sysfs
