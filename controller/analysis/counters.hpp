// Counters read over a window: first and last reading inside it, and what lies between.
#pragma once

#include "controller/analysis/run_data.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace perfrig::analysis {

struct Reading {
    double delta = 0;        // last minus first
    Window window;           // the times of the two readings
    bool has_before = false; // there is a sample before the window
    double first = 0;
};

// None with fewer than two readings inside the window, or where the counter went backward (it was reset).
std::optional<Reading> read_counter(const model::Series& series, const Window& window);

// What several counters gave together.
struct Total {
    double sum = 0;
    double thread_seconds = 0; // sum over the counters of the time between their readings
    int counters = 0;
    std::optional<Window> window; // from the earliest reading to the latest
    void add(const Reading& reading);
    double per_second() const { return sum / window->seconds(); }
};

// Series by name, once.
class SeriesIndex {
  public:
    explicit SeriesIndex(const std::vector<model::Series>& series);
    const std::vector<const model::Series*>& named(std::string_view name) const;

  private:
    std::map<std::string, std::vector<const model::Series*>, std::less<>> by_name_;
};

// A tool's metric that says how much it got done: requests_per_second, transactions_per_second, operations_per_second.
bool is_rate(std::string_view metric);

std::string label(const model::Series& series, const char* key); // "" where it has none

// The total of all threads' counters of this name that `of` takes, by the group it names ("" leaves one out). Births
// and renames are told apart as derived.hpp says.
std::map<std::string, Total> thread_totals(const SeriesIndex& index, std::string_view name, const Window& window,
                                           const std::function<std::string(const model::Series&)>& of);

} // namespace perfrig::analysis
