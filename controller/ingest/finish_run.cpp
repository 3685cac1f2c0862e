// A run that ended: its samples are sealed, what they mean is derived, its placement is judged.
#include "controller/analysis/placement_check.hpp"
#include "controller/db/run_facts.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/samples.hpp"
#include "controller/db/transaction.hpp"
#include "controller/ingest/ingest.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace perfrig::ingest {

namespace {

// Of a series only what the window needs: samples in it, and one before it that tells whether a thread is older than
// it.
struct InWindow {
    model::Series series;
    std::optional<model::Point> before;

    void take(const std::vector<model::Point>& points, const analysis::Window& window) {
        const auto first = std::ranges::lower_bound(points, window.start_ns, {}, &model::Point::time_ns);
        const auto end = std::ranges::upper_bound(points, window.end_ns, {}, &model::Point::time_ns);
        if (first != points.begin() && (!before || before->time_ns <= std::prev(first)->time_ns))
            before = *std::prev(first);
        series.points.insert(series.points.end(), first, end);
    }
    model::Series whole() && {
        if (before) series.points.push_back(*before);
        std::ranges::stable_sort(series.points, {}, &model::Point::time_ns);
        return std::move(series);
    }
};

// Chunk by chunk: what lies outside the window is never in memory together.
Result<void> load_series(db::Connection& c, const model::Run& run, const analysis::Window& window,
                         std::vector<model::Series>& out) {
    PERFRIG_TRY(const auto infos, db::runs::series(c, run.id));
    for (const std::string_view name : analysis::series_wanted()) {
        std::map<std::pair<model::Id, int>, InWindow> found;
        for (const auto& info : infos)
            if (info.name == name) found[{info.machine_id, info.id}].series.info = info;
        if (found.empty()) continue;
        const auto take = [&](const db::samples::Chunk& chunk) {
            found.at({chunk.machine, chunk.series}).take(chunk.points, window);
            return true;
        };
        PERFRIG_CHECK(db::samples::each_chunk(c, run.id, {.name = name}, take));
        for (auto& [key, one] : found) out.push_back(std::move(one).whole());
    }
    return {};
}

Result<analysis::RunData> load(db::Connection& c, const model::Run& run) {
    analysis::RunData data;
    data.run = run.id;
    PERFRIG_TRY(const auto machines, db::runs::machines(c, run.id));
    if (!machines.empty()) data.roles = machines.front().roles;
    for (const Json& group : run.resolved.value("share", Json::array())) {
        std::vector<std::string> roles;
        for (const Json& role : group)
            if (role.is_string()) roles.push_back(role.get<std::string>());
        data.share.push_back(std::move(roles));
    }
    PERFRIG_TRY(data.phases, db::runs::phases(c, run.id));
    PERFRIG_TRY(data.processes, db::runs::processes(c, run.id));
    PERFRIG_TRY(data.metrics, db::runs::metrics(c, run.id));
    PERFRIG_TRY(data.findings, db::runs::findings(c, run.id));
    const auto window = analysis::measure_window(data.phases);
    if (!window) return data;
    PERFRIG_CHECK(load_series(c, run, *window, data.series));
    return data;
}

Result<void> evaluate(db::Connection& c, const model::Run& run) {
    PERFRIG_CHECK(db::facts::clear_evaluation(c, run.id));
    if (run.state != model::RunState::completed) return {}; // what broke is not judged by its numbers
    PERFRIG_TRY(const analysis::RunData data, load(c, run));
    analysis::Evaluation found = analysis::evaluate(data);
    PERFRIG_CHECK(db::facts::put_metrics(c, run.id, found.metrics));
    PERFRIG_CHECK(db::facts::add_findings(c, found.findings));
    if (run.verdict != model::Verdict::unreviewed && run.verdict != model::Verdict::void_) return {}; // a person's word
    return db::runs::set_verdict(c, run.id, found.void_run ? model::Verdict::void_ : model::Verdict::unreviewed);
}

} // namespace

Result<void> finish_run(db::Connection& c, model::Id id) {
    PERFRIG_TRY(db::Transaction transaction, db::Transaction::begin(c));
    PERFRIG_CHECK(db::samples::seal(c, id)); // takes the run's lock
    PERFRIG_TRY(const model::Run run, db::runs::get(c, id));
    PERFRIG_CHECK(evaluate(c, run));
    return transaction.commit();
}

Result<void> give_up_run(db::Connection& c, model::Id id, const std::string& why) {
    PERFRIG_TRY(db::Transaction transaction, db::Transaction::begin(c));
    model::Finding finding;
    finding.run_id = id;
    finding.check_name = "not_evaluated";
    finding.severity = model::Severity::warning;
    finding.subject = "run " + std::to_string(id);
    finding.message = "its samples could not be sealed or evaluated; they are kept as they came: " + why;
    finding.source = "controller";
    PERFRIG_CHECK(db::facts::add_findings(c, {&finding, 1}));
    PERFRIG_CHECK(c.exec("update run set sealed_at = now() where id = $1 and sealed_at is null", {id}));
    return transaction.commit();
}

} // namespace perfrig::ingest
