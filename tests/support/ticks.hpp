// Looks into ticks of collectors by name and label, as a test wants to.
#pragma once

#include "agent/collectors/collector.hpp"

#include <map>
#include <optional>
#include <string>

namespace perfrig::test {

class TickReader {
  public:
    void add(const Tick& tick) {
        for (const SeriesInfo& info : tick.new_series) series_[info.id] = info;
        last_ = tick;
    }
    // The value in the last tick of the only series with this name and these labels among its own.
    std::optional<double> value(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
        std::optional<double> found;
        for (const auto& [id, value] : last_.values)
            if (matches(series_.at(id), name, labels)) found = value;
        return found;
    }
    double sum(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
        double total = 0;
        for (const auto& [id, value] : last_.values)
            if (matches(series_.at(id), name, labels)) total += value;
        return total;
    }
    std::size_t count(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
        std::size_t n = 0;
        for (const auto& [id, value] : last_.values) n += matches(series_.at(id), name, labels);
        return n;
    }
    const Tick& last() const { return last_; }

  private:
    static bool matches(const SeriesInfo& info, const std::string& name,
                        const std::map<std::string, std::string>& labels) {
        if (info.name != name) return false;
        for (const auto& [key, value] : labels) {
            const auto found = info.labels.find(key);
            if (found == info.labels.end() || found->second != value) return false;
        }
        return true;
    }
    std::map<int, SeriesInfo> series_;
    Tick last_;
};

} // namespace perfrig::test
