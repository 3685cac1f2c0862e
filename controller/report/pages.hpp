// The results of a large submission come in pages of cells, each with the columns and findings of its own cells: put
// together again to what one page of all cells would say. Pure.
#pragma once

#include "common/base/json.hpp"

namespace perfrig::report {

// `results`: the pages before (schemas/openapi.yaml, Results). A column that only later cells have comes behind those
// that are known, and one that is worth showing (main) in any page is so in the whole.
void add_page(Json& results, Json page);

} // namespace perfrig::report
