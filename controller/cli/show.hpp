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
// A submission's runs, every page.
Result<Json> all_runs(const Client& client, std::int64_t submission);
// The newest submission's id; of one experiment where `experiment` is not empty.
Result<std::int64_t> latest_submission(const Client& client, const std::string& experiment);

} // namespace perfrig::cli
