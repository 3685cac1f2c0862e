#include "agent/tools/reading.hpp"
#include "agent/tools/text.hpp"
#include "agent/tools/wrk.hpp"

#include <fmt/format.h>

namespace perfrig {

namespace {

// One sampling interval of wrk's own after its calibration; with less the per-thread rates are single samples.
constexpr double shortest_seconds = 1.5;

void add_row(Reading& reading, const WrkReport::Row& row, const std::string& name, const std::string& unit) {
    add(reading, name, unit, row.mean, {{"stat", "mean"}});
    add(reading, name, unit, row.stdev, {{"stat", "stdev"}});
    add(reading, name, unit, row.max, {{"stat", "max"}});
}

// A table that a script's done() printed: "name,value,unit" rows below a heading of these words.
void add_script_table(Reading& reading, const std::vector<std::string>& output) {
    struct Unit {
        std::string_view printed, unit;
        double factor;
    };
    constexpr Unit units[] = {{"us", "s", 1e-6},       {"ms", "s", 1e-3},   {"s", "s", 1},
                              {"bytes", "B", 1},       {"n", "count", 1},   {"requests/sec", "1/s", 1},
                              {"bytes/sec", "B/s", 1}, {"%", "ratio", 0.01}};
    bool in_table = false;
    for (const std::string_view line : output) {
        if (line == "variable,value,unit") {
            in_table = true;
            continue;
        }
        if (!in_table) continue;
        const auto second = line.rfind(',');
        const auto first = second == std::string_view::npos || second == 0 ? second : line.rfind(',', second - 1);
        if (first == std::string_view::npos || first == 0 || first == second) return;
        const auto printed = line.substr(second + 1);
        const auto field = line.substr(first + 1, second - first - 1);
        const auto number = text::number(field);
        if (!number && !text::no_number(field)) return;
        for (const auto& unit : units)
            if (unit.printed == printed)
                add(reading, "script_value", std::string(unit.unit),
                    number ? std::optional(*number * unit.factor) : std::nullopt,
                    {{"variable", std::string(line.substr(0, first))}});
    }
}

void judge_answers(Reading& reading, const WrkReport& r) {
    const double socket_errors =
        count(r.connect_errors) + count(r.read_errors) + count(r.write_errors) + count(r.timeouts);
    const double requests = count(r.requests);
    if (r.requests == 0) {
        worsen(reading, ReadingStatus::invalid,
               socket_errors > 0  ? fmt::format("no request completed; {:.0f} socket errors", socket_errors)
               : r.bytes_read > 0 ? "no request completed, although bytes came: an answer is longer than the run"
                                  : "no request completed: the server took the connections and never answered");
        return;
    }
    if (r.status_errors >= r.requests) {
        worsen(reading, ReadingStatus::invalid, "every answer is an error (neither 2xx nor 3xx)");
    } else if (socket_errors + count(r.status_errors) >= requests) {
        worsen(reading, ReadingStatus::invalid,
               fmt::format("as many errors as requests: {:.0f} against {:.0f}", socket_errors + count(r.status_errors),
                           requests));
    }
    if (r.connect_errors > 0)
        worsen(reading, ReadingStatus::suspect, fmt::format("{} connections never opened", r.connect_errors));
    if (r.read_errors > 0) worsen(reading, ReadingStatus::suspect, fmt::format("{} read errors", r.read_errors));
    if (r.write_errors > 0) worsen(reading, ReadingStatus::suspect, fmt::format("{} write errors", r.write_errors));
    if (r.timeouts > 0)
        worsen(reading, ReadingStatus::suspect,
               fmt::format("{} timeouts, whose latencies are missing from the distribution", r.timeouts));
    if (r.status_errors > 0)
        worsen(reading, ReadingStatus::suspect, fmt::format("{} answers are neither 2xx nor 3xx", r.status_errors));
    if (!r.latency.mean) worsen(reading, ReadingStatus::suspect, "requests completed, but no latency was printed");
}

void judge_time(Reading& reading, const WrkReport& r, const ToolOutput& output) {
    if (!r.elapsed_seconds) {
        worsen(reading, ReadingStatus::invalid,
               "the printed run time wrapped below zero: the clock stepped back during the run");
        return;
    }
    const double elapsed = *r.elapsed_seconds;
    // wrk reads the wall clock, the run the monotonic one. Printed minutes and hours are rounded, hence the 2 %.
    if (output.elapsed_seconds && std::abs(elapsed - *output.elapsed_seconds) > 1 + 0.02 * elapsed) {
        worsen(reading, ReadingStatus::invalid,
               fmt::format("wrk's clock counted {:.4g} s where {:.4g} s passed: the clock stepped during the run",
                           elapsed, *output.elapsed_seconds));
        return;
    }
    const double asked = output.asked_seconds.value_or(r.asked_least_seconds);
    if (elapsed < shortest_seconds)
        worsen(reading, ReadingStatus::too_short, fmt::format("{:.3g} s measure nothing but the start", elapsed));
    else if (elapsed < 0.9 * asked)
        worsen(reading, ReadingStatus::too_short, fmt::format("it ran for {:.4g} s of {:.4g} s", elapsed, asked));
    else if (output.asked_seconds && elapsed > 1.25 * asked + 2)
        worsen(reading, ReadingStatus::suspect, fmt::format("it took {:.4g} s for {:.4g} s", elapsed, asked));
}

// Its own words when it never started to measure; some builds exit 0 after them.
bool refused(const ToolOutput& output) {
    for (const auto all : {output.out, output.err})
        for (const std::string_view words : {"unable to connect to", "unable to resolve", "invalid URL"})
            if (all.find(words) != std::string_view::npos) return true;
    return false;
}

Reading read_report(const WrkReport& r, const ToolOutput& output, const WrkExpectation& expected) {
    Reading reading;
    add(reading, "requests_per_second", "1/s", r.requests_per_second);
    add(reading, "requests", "count", count(r.requests));
    add(reading, "elapsed_seconds", "s", r.elapsed_seconds);
    add(reading, "bytes_read", "B", r.bytes_read);
    add(reading, "bytes_per_second", "B/s", r.bytes_per_second);
    add_row(reading, r.latency, "latency_seconds", "s");
    for (const auto& [quantile, seconds] : r.quantiles)
        add(reading, "latency_seconds", "s", seconds, {{"quantile", quantile}});
    add(reading, "latency_within_stdev_ratio", "ratio", r.latency.within_stdev);
    add_row(reading, r.per_thread, "thread_requests_per_second", "1/s");
    add(reading, "thread_requests_within_stdev_ratio", "ratio", r.per_thread.within_stdev);
    add(reading, "errors", "count", count(r.connect_errors), {{"kind", "connect"}});
    add(reading, "errors", "count", count(r.read_errors), {{"kind", "read"}});
    add(reading, "errors", "count", count(r.write_errors), {{"kind", "write"}});
    add(reading, "errors", "count", count(r.timeouts), {{"kind", "timeout"}});
    add(reading, "errors", "count", count(r.status_errors), {{"kind", "status"}});
    add_script_table(reading, r.script_output);
    reading.facts = {{"url", r.url},
                     {"threads", std::to_string(r.threads)},
                     {"connections", std::to_string(r.connections)},
                     {"asked", r.asked},
                     {"asked_seconds", fmt::format("{}", r.asked_seconds)}};
    if (r.threads > 0) { // each thread opens connections / threads, whatever the report says
        const std::uint64_t opened = r.connections / r.threads * r.threads;
        reading.facts["connections_opened"] = std::to_string(opened);
        // A script may delay or pipeline requests.
        if (!expected.script_may_print) add(reading, "concurrency", "count", count(opened));
    }
    judge_answers(reading, r);
    judge_time(reading, r, output);
    if (const auto end = how_it_ended(output); !end.empty())
        worsen(reading, ReadingStatus::invalid, end + " after its report");
    else if (const auto complaint = last_line(output.err); !complaint.empty())
        worsen(reading, ReadingStatus::suspect, "it complained: " + complaint);
    return reading;
}

} // namespace

Result<Reading> read_wrk(const ToolOutput& output, const WrkExpectation& expected) {
    const auto report = parse_wrk_report(output.out);
    if (!report) {
        auto end = how_it_ended(output);
        if (end.empty() && refused(output)) end = "it exited with status 0";
        if (end.empty()) return report.error();
        const auto said = last_line(output.err.empty() ? output.out : output.err);
        return no_result(said.empty() ? end : said + " (" + end + ")");
    }
    if (!expected.script_may_print && !report->script_output.empty())
        return fail(ErrorKind::bad_input, "read the report of", "wrk",
                    "a line is there that wrk does not print: '" + report->script_output[0].substr(0, 120) + "'");
    if (expected.distribution_required && report->quantiles.empty())
        return fail(ErrorKind::bad_input, "read the report of", "wrk", "the latency distribution is missing",
                    "is this the wrk that takes --latency?");
    return read_report(*report, output, expected);
}

} // namespace perfrig
