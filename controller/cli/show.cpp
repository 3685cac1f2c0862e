#include "controller/cli/show.hpp"

#include "controller/report/pages.hpp"
#include "controller/report/results.hpp"
#include "controller/report/text.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace perfrig::cli {

namespace {

std::string text_or(const Json& json, const char* key, const std::string& fallback = "") {
    const auto found = json.find(key);
    return found == json.end() || !found->is_string() ? fallback : found->get<std::string>();
}

std::string number_or(const Json& json, const char* key, const std::string& fallback = "") {
    const auto found = json.find(key);
    return found == json.end() || !found->is_number() ? fallback : found->dump();
}

// Whole seconds: "2026-12-01T05:50:12Z".
std::string time_or(const Json& json, const char* key) {
    std::string text = text_or(json, key);
    if (const auto point = text.find('.'); point != std::string::npos) text.replace(point, std::string::npos, "Z");
    return text;
}

std::string rough_time(double seconds) {
    const long minutes = std::lround(seconds / 60);
    if (seconds < 90) return std::to_string(std::lround(seconds)) + " s";
    if (minutes < 120) return std::to_string(minutes) + " min";
    return std::to_string(minutes / 60) + " h" + (minutes % 60 == 0 ? "" : " " + std::to_string(minutes % 60) + " min");
}

// The day too, where it is another one.
std::string local_time(std::int64_t utc_ns, std::int64_t now_utc_ns) {
    const std::time_t then = utc_ns / 1'000'000'000, now = now_utc_ns / 1'000'000'000;
    std::tm local{}, today{};
    ::localtime_r(&then, &local);
    ::localtime_r(&now, &today);
    const bool same_day = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday;
    char text[32];
    return {text, std::strftime(text, sizeof text, same_day ? "%H:%M" : "%Y-%m-%d %H:%M", &local)};
}

bool starts_now(const Json& submission) {
    const auto waiting = submission.find("waiting");
    if (waiting == submission.end() || !waiting->is_object()) return true;
    for (const Json& machine : waiting->value("machines", Json::array()))
        if (text_or(machine, "why") == "free" && waiting->value("blocks_ahead", 0) == 0) return true;
    return false;
}

std::string counts_text(const Json& counts) {
    std::string out;
    for (const auto& [state, count] : counts.items())
        out += (out.empty() ? "" : ", ") + std::to_string(count.get<std::int64_t>()) + " " + state;
    return out;
}

// Why those that have not ended do not run; of a long queue the first ones.
Result<std::string> waiting_lines(const Client& client, const Json& submissions) {
    constexpr int most_asked = 10;
    std::string out;
    int asked = 0;
    for (const Json& s : submissions) {
        const std::string state = text_or(s, "state");
        if ((state != "queued" && state != "running") || ++asked > most_asked) continue;
        const std::string id = std::to_string(s.value("id", 0));
        PERFRIG_TRY(const Json document, client.get("/api/v1/submissions/" + id));
        if (const std::string why = waiting_text(document); !why.empty()) out += id + " waits: " + why + "\n";
    }
    return out;
}

Result<std::string> list_text(const Client& client) {
    PERFRIG_TRY(const Json page, client.get("/api/v1/submissions?limit=30"));
    std::vector<std::vector<std::string>> lines;
    for (const Json& s : page.at("items"))
        lines.push_back({std::to_string(s.value("id", 0)), text_or(s, "experiment"), text_or(s, "state"),
                         std::to_string(s.value("priority", 0)), number_or(s, "run_count"), time_or(s, "created_at"),
                         text_or(s, "source")});
    if (lines.empty()) return std::string("nothing was submitted yet\n");
    std::string out = report::aligned({"id", "experiment", "state", "priority", "runs", "created", "source"}, lines);
    PERFRIG_TRY(const std::string waiting, waiting_lines(client, page.at("items")));
    return out + (waiting.empty() ? "" : "\n" + waiting);
}

} // namespace

std::string waiting_text(const Json& submission) {
    const auto waiting = submission.find("waiting");
    return waiting == submission.end() || !waiting->is_object() ? "" : text_or(*waiting, "text");
}

std::string run_name(const Json& run, const Json& submission) {
    const Json levels = run.value("levels", Json::object());
    std::vector<std::string> factors;
    const Json order = submission.value("factors", Json()); // none from a controller that is older than this program
    for (const Json& factor : order.is_array() ? order : Json::array())
        if (factor.is_string() && levels.contains(factor.get<std::string>()))
            factors.push_back(factor.get<std::string>());
    for (const auto& [factor, level] : levels.items())
        if (std::ranges::find(factors, factor) == factors.end()) factors.push_back(factor);
    std::string out;
    for (const std::string& factor : factors) out += factor + "=" + text_or(levels, factor.c_str()) + " ";
    out += "#" + std::to_string(run.value("replicate", 1));
    if (run.value("attempt", 1) > 1) out += " attempt " + std::to_string(run.value("attempt", 1));
    return out;
}

std::string expectation_text(const Json& submission, std::int64_t now_utc_ns) {
    const auto expected = submission.find("expected_seconds");
    if (expected == submission.end() || !expected->is_number() || text_or(submission, "state") != "queued") return "";
    const double seconds = expected->get<double>();
    const Json least = submission.value("expected_is_lower_bound", Json());
    const bool at_least = least.is_boolean() && least.get<bool>();
    std::string out = (at_least ? "at least " : "about ") + rough_time(seconds);
    if (!starts_now(submission)) return out + " once it starts";
    return out + ", until " + local_time(now_utc_ns + static_cast<std::int64_t>(seconds * 1e9), now_utc_ns);
}

Result<std::int64_t> latest_submission(const Client& client, const std::string& experiment) {
    PERFRIG_TRY(const Json page, client.get("/api/v1/submissions?limit=1" +
                                            (experiment.empty() ? "" : "&experiment=" + percent_encode(experiment))));
    if (page.at("items").empty())
        return fail(ErrorKind::not_found, "find a submission", experiment, "there is none",
                    "queue one with `perfrig run FILE`");
    return page["items"][0].value("id", std::int64_t{0});
}

Result<std::string> status_text(const Client& client, std::int64_t submission) {
    if (submission == 0) return list_text(client);
    PERFRIG_TRY(const Json s, client.get("/api/v1/submissions/" + std::to_string(submission)));
    std::string out =
        "submission " + std::to_string(submission) + " of " + text_or(s, "experiment") + ": " + text_or(s, "state");
    if (const std::string reason = text_or(s, "reason"); !reason.empty()) out += " (" + reason + ")";
    out += "\nruns: " + counts_text(s.value("run_counts", Json::object())) + "\n";
    if (const std::string why = waiting_text(s); !why.empty()) out += "waits: " + why + "\n";
    if (const std::string end = time_or(s, "expected_end"); !end.empty()) out += "expected end: " + end + "\n";
    for (const Json& block : s.value("blocks", Json::array())) {
        out += "block " + number_or(block, "ordinal") + ": " + text_or(block, "state");
        if (const std::string machine = text_or(block, "machine"); !machine.empty()) out += " on " + machine;
        if (const std::string reason = text_or(block, "reason"); !reason.empty()) out += ": " + reason;
        out += "\n";
    }
    for (const Json& run : s.value("current_runs", Json::array()))
        out +=
            "run " + std::to_string(run.value("id", 0)) + "  " + run_name(run, s) + ": " + text_or(run, "state") + "\n";
    return out;
}

Result<Json> all_runs(const Client& client, std::int64_t submission) {
    Json runs = Json::array();
    std::string after;
    do {
        PERFRIG_TRY(const Json page, client.get("/api/v1/submissions/" + std::to_string(submission) +
                                                "/runs?limit=1000" + (after.empty() ? "" : "&after=" + after)));
        for (const Json& run : page.at("items")) runs.push_back(run);
        after = text_or(page, "next");
    } while (!after.empty());
    return runs;
}

Result<Json> all_results(const Client& client, std::int64_t submission) {
    const std::string target = "/api/v1/submissions/" + std::to_string(submission) + "/results";
    PERFRIG_TRY(Json all, client.get(target));
    for (std::string after = text_or(all, "next"); !after.empty();) {
        PERFRIG_TRY(Json page, client.get(target + "?after=" + after));
        after = text_or(page, "next");
        report::add_page(all, std::move(page));
    }
    all.erase("next");
    return all;
}

Result<std::string> results_text(const Client& client, std::int64_t submission, Format format, bool colours) {
    PERFRIG_TRY(const Json results, all_results(client, submission));
    switch (format) {
    case Format::json: return results.dump(2) + "\n";
    case Format::csv: return report::results_as_csv(results);
    case Format::csv_runs: return report::results_as_csv_of_runs(results);
    case Format::markdown: return report::results_as_markdown(results);
    case Format::table: break;
    }
    return report::results_as_table(results, colours);
}

Result<std::string> junit_text(const Client& client, std::int64_t submission) {
    PERFRIG_TRY(const Json results, all_results(client, submission));
    PERFRIG_TRY(const Json runs, all_runs(client, submission));
    return report::results_as_junit(results, runs);
}

Result<std::string> machines_text(const Client& client, const std::string& name, bool json) {
    if (!name.empty()) {
        PERFRIG_TRY(const Json machine, client.get("/api/v1/machines/" + percent_encode(name)));
        return machine.dump(2) + "\n";
    }
    PERFRIG_TRY(const Json page, client.get("/api/v1/machines?limit=1000"));
    if (json) return page.at("items").dump(2) + "\n";
    std::vector<std::vector<std::string>> lines;
    for (const Json& m : page.at("items"))
        lines.push_back({text_or(m, "name"), text_or(m, "state"), m.value("connected", false) ? "yes" : "no",
                         text_or(m, "doing"), text_or(m, "state_reason"), time_or(m, "last_seen")});
    if (lines.empty()) return std::string("no machine has enrolled yet: see perfrig-agent join\n");
    return report::aligned({"machine", "state", "connected", "doing", "reason", "last seen"}, lines);
}

} // namespace perfrig::cli
