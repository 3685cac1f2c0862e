// Every contract with the outside (experiment schema, OpenAPI, SQL migrations) is a file in schemas/ that the
// build embeds, so that a program needs nothing beside itself. Names are paths relative to schemas/, sorted.
#pragma once

#include <span>
#include <string_view>

namespace perfrig::schemas {

struct EmbeddedFile {
    std::string_view name; // for example "migrations/0001_initial.sql"
    std::string_view content;
};

std::span<const EmbeddedFile> files();

// Empty where there is no such file; a missing contract is a bug that unit tests catch.
inline std::string_view file(std::string_view name) {
    for (const EmbeddedFile& f : files())
        if (f.name == name) return f.content;
    return {};
}

} // namespace perfrig::schemas
