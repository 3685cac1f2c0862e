#include "common/experiment/fault.hpp"

#include <algorithm>
#include <tuple>

namespace perfrig {

std::string Fault::text(std::string_view file) const {
    std::string out(file);
    if (line > 0) out += ":" + std::to_string(line) + ":" + std::to_string(column);
    if (!out.empty()) out += ": ";
    out += message;
    if (!remedy.empty()) out += " (" + remedy + ")";
    return out;
}

std::vector<Fault> in_order(std::vector<Fault> faults) {
    std::stable_sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    std::vector<Fault> out;
    for (Fault& fault : faults) {
        // Repeats stand at one place, so the look back ends where the place changes.
        bool repeated = false;
        for (auto it = out.rbegin(); it != out.rend() && it->line == fault.line && it->column == fault.column; ++it)
            repeated = repeated || *it == fault;
        if (!repeated) out.push_back(std::move(fault));
    }
    return out;
}

Json faults_to_json(std::span<const Fault> faults) {
    Json out = Json::array();
    for (const Fault& fault : faults)
        out.push_back({{"line", fault.line},
                       {"column", fault.column},
                       {"path", fault.path},
                       {"message", fault.message},
                       {"remedy", fault.remedy}});
    return out;
}

namespace {

// Optimal string alignment: like Levenshtein's distance, with a swap of neighbours counted as one.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = std::min(now[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, now);
    }
    return last[b.size()];
}

} // namespace

std::string nearest_word(std::string_view wrong, std::span<const std::string> known) {
    constexpr std::size_t longest_word = 64; // longer ones are no typing errors, and the distance costs their product
    if (wrong.empty() || wrong.size() > longest_word) return {};
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 3) + 1;
    for (const std::string& word : known) {
        if (word.size() > longest_word) continue;
        const std::size_t d = distance(wrong, word);
        // As many changes as letters means that nothing is shared.
        if (d < best_distance && d < std::max(wrong.size(), word.size())) best = word, best_distance = d;
    }
    return best;
}

} // namespace perfrig
