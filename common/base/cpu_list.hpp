// A set of CPU ids in the kernel's list format ("0-3,8,10-14:2"): what grants, affinities and sysfs speak.
// Format: Documentation/admin-guide/cputopology.rst and lib/bitmap.c (bitmap_parselist) of Linux.
#pragma once

#include "common/base/result.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

class CpuList {
  public:
    static constexpr int most_cpus = 8192; // CONFIG_NR_CPUS's upper bound on x86-64

    CpuList() = default;
    CpuList(std::initializer_list<int> ids) : ids_(ids) {}

    // Strict: no spaces, no empty items, no backward ranges, no repeats; "" is the empty list. Steps ("0-8:2") are
    // read as "every second id". The kernel's group form ("0-8:2/4") is refused.
    static Result<CpuList> parse(std::string_view text);
    // The form in which sysfs and /proc print lists: as parse, with one trailing newline allowed.
    static Result<CpuList> parse_kernel(std::string_view text);

    std::string text() const; // shortest list form, ascending: "0-3,8"
    bool empty() const { return ids_.empty(); }
    std::size_t size() const { return ids_.size(); }
    bool contains(int id) const { return ids_.contains(id); }
    bool contains_all(const CpuList& other) const;
    void add(int id) { ids_.insert(id); }
    CpuList both(const CpuList& other) const;    // intersection
    CpuList either(const CpuList& other) const;  // union
    CpuList without(const CpuList& other) const; // difference
    std::vector<int> ids() const { return {ids_.begin(), ids_.end()}; }
    auto begin() const { return ids_.begin(); }
    auto end() const { return ids_.end(); }
    friend bool operator==(const CpuList&, const CpuList&) = default;

  private:
    std::set<int> ids_;
};

} // namespace perfrig
