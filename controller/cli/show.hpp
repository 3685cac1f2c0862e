// What stands in the database, on the screen: submissions, results, machines.
#pragma once

#include "controller/cli/client.hpp"

#include <cstdint>
#include <string>

namespace perfrig::cli {

enum class Format { table, json, csv, csv_runs, markdown };

Result<std::string> status_text(const Client& client, std::int64_t submission); // 0: the latest of all
Result<std::string> results_text(const Client& client, std::int64_t submission, Format format, bool colours);
Result<std::string> junit_text(const Client& client, std::int64_t submission);
Result<std::string> machines_text(const Client& client, const std::string& name, bool json); // "": all of them
// Why nothing of a submission runs, as its document says it; empty: something does.
std::string waiting_text(const Json& submission);
// "clients=4 mode=fast #2 attempt 2": factors in the order that the submission's document gives (the definition's).
std::string run_name(const Json& run, const Json& submission);
// How long a submission that was just queued takes, in the local time of whoever reads it: "about 9 min, until 05:50",
// "at least 40 s, once it starts"; empty: nobody knows.
std::string expectation_text(const Json& submission, std::int64_t now_utc_ns);
// A submission's runs, every page.
Result<Json> all_runs(const Client& client, std::int64_t submission);
// The newest submission's id; of one experiment where `experiment` is not empty.
Result<std::int64_t> latest_submission(const Client& client, const std::string& experiment);

} // namespace perfrig::cli
