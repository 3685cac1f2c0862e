// An experiment file seen as sections: parts that can each be read by themselves, with the factors that each depends
// on. A section is checked once per combination of its own factors, so that a file with a million cells is checked
// whole without looking at a million cells. Inner header of the validator, expand() and resolve().
#pragma once

#include "common/experiment/experiment.hpp"
#include "common/experiment/sections.hpp"

#include <functional>

namespace perfrig {

using Levels = std::map<std::string, std::string>;

// What the sections of one cell add up to.
struct Parts {
    ResolvedRun run; // experiment, levels, replicate, roles, share and secrets are not the sections' business
    std::map<std::string, RoleRecipe> roles;
};

struct Section {
    std::string path;                 // "services.nginx"
    std::vector<std::size_t> factors; // indexes of those that it mentions, ascending
    std::size_t weight = 0;           // about how many bytes reading it once touches
    bool yields = true;               // false: it only checks, and adds nothing to the run
    std::function<void(const Levels&, Findings&, Parts&)> read;
};

// The document and the factors must outlive the sections.
std::vector<Section> sections_of(const YamlNode& document, const std::vector<Factor>& factors);

// The combinations of some factors' levels, counted like an odometer whose last wheel turns fastest.
class Combinations {
  public:
    Combinations(const std::vector<Factor>& factors, std::vector<std::size_t> chosen);
    std::uint64_t size() const { return size_; } // UINT64_MAX: that many or more
    Levels at(std::uint64_t ordinal) const;
    // Which of these the cell of all factors with this ordinal belongs to. `all` chooses every factor.
    std::uint64_t of_cell(std::uint64_t cell, const Combinations& all) const;

  private:
    const std::vector<Factor>& factors_;
    std::vector<std::size_t> chosen_;
    std::uint64_t size_ = 1;
};
std::vector<std::size_t> every_index(const std::vector<Factor>& factors);

// The checks that look at names alone: unknown ${NAME}, places where none may stand, factors that nothing uses.
void check_references(const YamlNode& document, const std::vector<Factor>& factors,
                      const std::vector<std::string>& ports, std::vector<Fault>& faults);
// Every section in every combination of its factors (as far as a bound on the work allows; resolve() reads again).
void check_sections(const YamlNode& document, const std::vector<Factor>& factors, std::vector<Fault>& faults);
// Two cells that come to the same run. Only for a document without faults.
void check_distinct(const YamlNode& document, const std::vector<Factor>& factors, std::vector<Fault>& faults);

} // namespace perfrig
