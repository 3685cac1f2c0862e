// The API's description, schemas/openapi.yaml, as JSON: what is served at /api/v1/openapi.json and what tests hold
// against the router's table.
#pragma once

#include "common/base/json.hpp"

namespace perfrig::api {

// Throws where the build embedded a broken one, which is a bug.
Json openapi_document();

} // namespace perfrig::api
