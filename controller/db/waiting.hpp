// What a submission that does not start waits for.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/model/waiting.hpp"

namespace perfrig::db::waiting {

// Of a submission that has not ended.
Result<model::WaitingView> view(Connection& c, const model::Submission& submission);

} // namespace perfrig::db::waiting
