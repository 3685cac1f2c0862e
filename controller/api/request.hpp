// Reading a request's parts strictly: a parameter that isn't what it should be is an error of the asker, with its name.
#pragma once

#include "common/base/json.hpp"
#include "common/experiment/fault.hpp"
#include "controller/api/services.hpp"
#include "controller/db/page.hpp"

#include <optional>
#include <string>
#include <vector>

namespace perfrig::api {

// A number in the path; what is no number names nothing: not_found.
Result<std::int64_t> path_id(const Request& request, const char* name);
Result<std::int64_t> query_integer(const Request& request, const char* name, std::int64_t fallback, std::int64_t least,
                                   std::int64_t most);
Result<bool> query_boolean(const Request& request, const char* name, bool fallback);
std::optional<std::string> query_text(const Request& request, const char* name);
Result<db::PageRequest> query_page(const Request& request);
// Unknown query keys are refused, so that a misspelt filter doesn't list everything.
Result<void> only_query(const Request& request, std::initializer_list<std::string_view> known);

Result<Json> json_body(const Request& request); // an object
bool has_json_body(const Request& request);     // by its Content-Type

HttpResponse json_answer(const Json& json, int status = 200);
Json next_json(std::int64_t next); // "12", or null where it is 0
// 422 with every fault.
HttpResponse faults_answer(std::string_view detail, const std::vector<Fault>& faults);
HttpResponse problem(int status, std::string_view detail);
// For an Error of a handler: what is internal is explained in the log, not to the asker.
HttpResponse answer_for(const Error& error, const Request& request);

// Who did it, for the audit trail: "user 1a2b3c4d".
std::string actor(const Request& request);

} // namespace perfrig::api
