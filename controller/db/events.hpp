// The audit trail: who did what to what.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/db/page.hpp"
#include "controller/model/run.hpp"

#include <string_view>
#include <vector>

namespace perfrig::db::events {

// subject: "run/12", "machine/xeon", "submission/3".
Result<void> add(Connection& c, std::string_view actor, std::string_view subject, std::string_view what,
                 const Json& detail = Json::object());
Result<Page<model::Event>> list(Connection& c, std::string_view subject, PageRequest page);

} // namespace perfrig::db::events
