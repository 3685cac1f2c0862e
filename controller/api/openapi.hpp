// The API's description, schemas/openapi.yaml, as JSON: what is served at /api/v1/openapi.json and what tests hold
// against the router's table.
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <string_view>

namespace perfrig::api {

// YAML of our own making (no anchors, no tags) as JSON: plain scalars become numbers, booleans and null by YAML's core
// schema, quoted ones stay text. bad_input with line and column.
Result<Json> yaml_to_json(std::string_view yaml, std::string_view what);

// The embedded description. Throws where the build embedded a broken one, which is a bug.
Json openapi_document();

} // namespace perfrig::api
