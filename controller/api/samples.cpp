#include "controller/db/samples.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/runs.hpp"

#include <algorithm>
#include <cmath>

namespace perfrig::api {

namespace {

constexpr int most_frames = 200'000; // two days at 1 Hz
constexpr std::int64_t most_points = 1'000'000;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// A living run's samples are still frames; late ones of a sealed run may be, too.
Result<db::samples::PageOfPoints> points_of(db::Connection& c, model::Id run, const model::SeriesInfo& wanted,
                                            std::int64_t after_ns, std::size_t limit) {
    PERFRIG_TRY(auto page, db::samples::read_points(c, run, wanted.machine_id, wanted.id, after_ns, limit));
    PERFRIG_TRY(const auto frames, db::samples::live_tail(c, run, most_frames));
    const auto last_ns = page.more ? page.points.back().time_ns : INT64_MAX; // behind it come later pages
    for (const auto& live : frames) {
        if (live.machine != wanted.machine_id || live.frame.time_ns <= after_ns || live.frame.time_ns > last_ns)
            continue;
        for (const auto& sample : live.frame.samples)
            if (static_cast<int>(sample.series) == wanted.id) page.points.push_back({live.frame.time_ns, sample.value});
    }
    std::ranges::stable_sort(page.points, {}, &model::Point::time_ns);
    return page;
}

Json planned_ms(const model::Run& run, const std::string& phase) {
    const auto* key = phase == "warm_up" ? "warm_up_ms" : phase == "pause" ? "pause_ms" : "measure_ms";
    if (phase != "warm_up" && phase != "pause" && phase != "measure") return nullptr;
    const auto planned = run.resolved.is_object() ? run.resolved.value(key, Json()) : Json();
    return planned.is_number_integer() && planned.get<std::int64_t>() > 0 ? planned : Json();
}

} // namespace

Result<HttpResponse> series_samples(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"limit", "after"}));
    PERFRIG_TRY(const auto run, path_id(request, "run"));
    PERFRIG_TRY(const auto id, path_id(request, "series"));
    PERFRIG_TRY(const auto limit, query_integer(request, "limit", most_points, 1, most_points));
    PERFRIG_TRY(const auto after, query_integer(request, "after", INT64_MIN, 0, INT64_MAX));
    const auto& machine_name = request.parameters.at("machine");
    PERFRIG_CHECK(db::runs::get(c, run));
    PERFRIG_TRY(const auto names, db::machines::names(c));
    PERFRIG_TRY(const auto all, db::runs::series(c, run));
    const auto wanted = std::find_if(all.begin(), all.end(), [&](const model::SeriesInfo& one) {
        const auto name = names.find(one.machine_id);
        return one.id == id && name != names.end() && name->second == machine_name;
    });
    if (wanted == all.end())
        return fail(ErrorKind::not_found, "find the series", machine_name + "/" + std::to_string(id),
                    "run " + std::to_string(run) + " has none of that number on that machine");
    PERFRIG_TRY(const auto page, points_of(c, run, *wanted, after, static_cast<std::size_t>(limit)));
    Json times = Json::array(), values = Json::array();
    for (const auto& point : page.points) {
        times.push_back(point.time_ns);
        values.push_back(number_or_null(point.value));
    }
    return json_answer({{"series", to_json(*wanted, names)},
                        {"time_ns", std::move(times)},
                        {"values", std::move(values)},
                        {"next", next_json(page.more ? page.points.back().time_ns : 0)}});
}

Result<HttpResponse> run_live(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_TRY(const auto run, db::runs::get(c, id));
    PERFRIG_TRY(const auto names, db::machines::names(c));
    PERFRIG_TRY(const auto phases, db::runs::phases(c, id));
    PERFRIG_TRY(const auto series, db::runs::series(c, id));
    PERFRIG_TRY(const auto frames, db::samples::live_tail(c, id, 40));
    Json json{{"run", id}, {"state", model::to_string(run.state)}, {"phase", nullptr}, {"time_ns", nullptr}};
    if (!phases.empty()) {
        const auto newest = std::max_element(phases.begin(), phases.end(),
                                             [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
        auto phase = to_json(*newest, names);
        json["phase"] = {{"name", newest->name},
                         {"start_ns", newest->start_ns},
                         {"start_utc", phase["start_utc"]},
                         {"planned_ms", planned_ms(run, newest->name)}};
    }
    struct Latest {
        model::Point now, before;
        bool twice = false;
    };
    std::map<std::pair<model::Id, int>, Latest> latest;
    std::int64_t newest_ns = 0;
    for (const auto& live : frames) {
        newest_ns = std::max(newest_ns, live.frame.time_ns);
        for (const auto& sample : live.frame.samples) {
            auto [at, fresh] = latest.try_emplace({live.machine, static_cast<int>(sample.series)});
            if (!fresh) {
                at->second.before = at->second.now;
                at->second.twice = true;
            }
            at->second.now = {live.frame.time_ns, sample.value};
        }
    }
    if (newest_ns > 0) json["time_ns"] = newest_ns;
    json["samples"] = Json::array();
    for (const auto& info : series) {
        const auto at = latest.find({info.machine_id, info.id});
        if (at == latest.end()) continue;
        const auto& [now, before, twice] = at->second;
        auto sample = to_json(info, names);
        sample["time_ns"] = now.time_ns;
        sample["value"] = number_or_null(now.value);
        sample["rate_per_second"] = nullptr;
        if (info.counter && twice && now.time_ns > before.time_ns)
            sample["rate_per_second"] =
                number_or_null((now.value - before.value) * 1e9 / static_cast<double>(now.time_ns - before.time_ns));
        json["samples"].push_back(std::move(sample));
    }
    return json_answer(json);
}

} // namespace perfrig::api
