// What is wrong with a text that a person wrote, and where: a fault has a place, a reason and a remedy. Readers collect
// faults instead of stopping at the first, so that a file is repaired in one go.
#pragma once

#include "common/base/json.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

struct Fault {
    int line = 0;        // from 1; 0: not from the file (an override, a missing file)
    int column = 0;      // from 1, in characters
    std::string path;    // "services.nginx.ready"; empty: the document itself
    std::string message; // what is wrong, naming the path where that helps
    std::string remedy;  // what to do, in one clause; may be empty

    // "web.yaml:12:5: unknown key 'conections' in tools.wrk (did you mean 'connections'?)"
    std::string text(std::string_view file) const;
    friend bool operator==(const Fault&, const Fault&) = default;
};

// By place, then as they came, without repeats.
std::vector<Fault> in_order(std::vector<Fault> faults);

// [{"line":12,"column":5,"path":"tools.wrk","message":"...","remedy":"..."}]: what `perfrig validate --json` prints and
// what the API answers.
Json faults_to_json(std::span<const Fault> faults);

// The known word nearest to a misspelt one, or "" if none is near: optimal string alignment distance (insertion,
// deletion, replacement and swap of neighbours count one each) of at most 2, or a third of the word's length if that
// is more; never a word that shares nothing with it.
std::string nearest_word(std::string_view wrong, std::span<const std::string> known);

} // namespace perfrig
