#include "common/base/cpu_list.hpp"

#include <algorithm>
#include <charconv>

namespace perfrig {

namespace {

Error refuse(std::string_view text, std::string why) {
    return fail(ErrorKind::bad_input, "read the CPU list", "'" + std::string(text.substr(0, 80)) + "'", std::move(why),
                "write ids and ranges separated by commas, for example 0-3,8");
}

Result<int> parse_id(std::string_view digits, std::string_view whole) {
    int id = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (digits.empty()) return refuse(whole, "a CPU id is missing");
    if (digits[0] == '-' || digits[0] == '+' || error == std::errc::invalid_argument ||
        end != digits.data() + digits.size())
        return refuse(whole, "'" + std::string(digits) + "' is not a CPU id");
    if (error == std::errc::result_out_of_range || id >= CpuList::most_cpus)
        return refuse(whole, "'" + std::string(digits) + "' is larger than any CPU id (at most 8191)");
    return id;
}

} // namespace

Result<CpuList> CpuList::parse(std::string_view text) {
    CpuList list;
    if (text.empty()) return list;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        std::string_view item = text.substr(start, comma - start);
        start = comma + 1;
        if (item.empty()) return refuse(text, "an item between commas is empty");
        int step = 1;
        if (const auto colon = item.find(':'); colon != std::string_view::npos) {
            PERFRIG_TRY(step, parse_id(item.substr(colon + 1), text));
            if (step == 0) return refuse(text, "a step of 0 goes nowhere");
            item = item.substr(0, colon);
            if (item.find('-') == std::string_view::npos) return refuse(text, "a step needs a range");
        }
        const auto dash = item.find('-');
        PERFRIG_TRY(const int first, parse_id(item.substr(0, dash), text));
        int last = first;
        if (dash != std::string_view::npos) {
            PERFRIG_TRY(last, parse_id(item.substr(dash + 1), text));
        }
        if (last < first) return refuse(text, "the range " + std::string(item) + " runs backwards");
        for (int id = first; id <= last; id += step)
            if (!list.ids_.insert(id).second) return refuse(text, "CPU " + std::to_string(id) + " is named twice");
    }
    return list;
}

Result<CpuList> CpuList::parse_kernel(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    return parse(text);
}

std::string CpuList::text() const {
    std::string out;
    for (auto it = ids_.begin(); it != ids_.end();) {
        const int first = *it;
        int last = first;
        while (++it != ids_.end() && *it == last + 1) last = *it;
        if (!out.empty()) out += ',';
        out += std::to_string(first);
        if (last != first) out += ("-") + std::to_string(last);
    }
    return out;
}

bool CpuList::contains_all(const CpuList& other) const {
    return std::includes(ids_.begin(), ids_.end(), other.ids_.begin(), other.ids_.end());
}

CpuList CpuList::both(const CpuList& other) const {
    CpuList out;
    std::set_intersection(ids_.begin(), ids_.end(), other.begin(), other.end(),
                          std::inserter(out.ids_, out.ids_.end()));
    return out;
}
CpuList CpuList::either(const CpuList& other) const {
    CpuList out = *this;
    out.ids_.insert(other.begin(), other.end());
    return out;
}
CpuList CpuList::without(const CpuList& other) const {
    CpuList out;
    std::set_difference(ids_.begin(), ids_.end(), other.begin(), other.end(), std::inserter(out.ids_, out.ids_.end()));
    return out;
}

} // namespace perfrig
