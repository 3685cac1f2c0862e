#include "agent/tools/pgbench.hpp"
#include "agent/tools/reading.hpp"

#include <fmt/format.h>

namespace perfrig {

namespace {

constexpr double shortest_seconds = 1.5; // under it connecting and the first plans are what is measured

void add_count(Reading& reading, const std::string& name, const std::optional<PgbenchCount>& count_,
               const Labels& labels) {
    if (!count_) return;
    add(reading, name, "count", count(count_->count), labels);
    add(reading, name + "_ratio", "ratio", count_->ratio, labels);
}

void add_statements(Reading& reading, const std::vector<PgbenchStatement>& statements, const Labels& labels) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
        Labels own = labels;
        own["statement"] = std::to_string(i + 1);
        own["text"] = statements[i].text.substr(0, 200);
        add(reading, "statement_latency_seconds", "s", statements[i].latency_seconds, own);
        if (statements[i].failures) add(reading, "statement_failures", "count", count(*statements[i].failures), own);
        if (statements[i].retries) add(reading, "statement_retries", "count", count(*statements[i].retries), own);
    }
}

// The same metrics for the run and for each of its scripts, which labels tell apart.
void add_totals(Reading& reading, const PgbenchTotals& t, const Labels& labels) {
    const auto with = [&](const char* key, const char* value) {
        Labels result = labels;
        result[key] = value;
        return result;
    };
    if (t.transactions_per_second || labels.empty())
        add(reading, "transactions_per_second", "1/s", t.transactions_per_second, labels);
    if (t.transactions) add(reading, "transactions", "count", count(*t.transactions), labels);
    if (t.latency_mean_seconds || labels.empty())
        add(reading, "latency_seconds", "s", t.latency_mean_seconds, with("stat", "mean"));
    if (t.latency_stdev_seconds) add(reading, "latency_seconds", "s", t.latency_stdev_seconds, with("stat", "stdev"));
    add_count(reading, "failed_transactions", t.failed, labels);
    add_count(reading, "serialization_failures", t.serialization_failures, labels);
    add_count(reading, "deadlock_failures", t.deadlock_failures, labels);
    add_count(reading, "other_failures", t.other_failures, labels);
    add_count(reading, "retried_transactions", t.retried, labels);
    if (t.retries) add(reading, "retries", "count", count(*t.retries), labels);
    add_count(reading, "skipped_transactions", t.skipped, labels);
    if (t.above_limit) {
        add(reading, "latency_limit_seconds", "s", t.above_limit->limit_seconds, labels);
        add(reading, "transactions_above_limit", "count", count(t.above_limit->count), labels);
    }
    add_statements(reading, t.statements, labels);
}

void add_facts(Reading& reading, const PgbenchReport& r) {
    const auto fact = [&](const char* name, std::string value) {
        if (!value.empty()) reading.facts[name] = std::move(value);
    };
    const auto number = [&](const char* name, const std::optional<std::uint64_t>& value) {
        if (value) reading.facts[name] = std::to_string(*value);
    };
    fact("version", r.version);
    fact("transaction_type", r.transaction_type);
    fact("query_mode", r.query_mode);
    fact("partition_method", r.partition_method);
    number("partitions", r.partitions);
    number("scale", r.scale);
    number("clients", r.clients);
    number("threads", r.threads);
    number("max_tries", r.max_tries);
    number("transactions_per_client", r.transactions_per_client);
    if (r.latency_includes_failures) fact("latency_kind", "including failures");
    if (r.reconnects) fact("rate_kind", "including reconnection times");
    if (!r.warnings.empty()) fact("warning", r.warnings.front());
    if (!r.errors.empty()) fact("error", r.errors.front());
}

void judge(Reading& reading, const PgbenchReport& r, std::optional<double> rate_asked) {
    const auto& t = r.totals;
    const auto done = t.transactions.value_or(0);
    if (r.aborted) {
        worsen(reading, ReadingStatus::invalid, "clients aborted, so the results are incomplete");
        if (!r.errors.empty()) reading.reason += ": " + r.errors.front();
    }
    if (done == 0)
        worsen(reading, ReadingStatus::invalid, "no transaction was processed");
    else if (!t.transactions_per_second)
        worsen(reading, ReadingStatus::invalid, "the printed rate is no number");
    if (t.failed && t.failed->count > 0)
        worsen(reading, ReadingStatus::suspect,
               fmt::format("{:.3g} % of the transactions failed",
                           100 * count(t.failed->count) / (count(t.failed->count) + count(done))));
    else if (r.planned && done < *r.planned)
        worsen(reading, ReadingStatus::suspect, fmt::format("{} of {} transactions were processed", done, *r.planned));
    if (!r.errors.empty()) worsen(reading, ReadingStatus::suspect, "it complained: " + r.errors.front());
    if (r.duration_seconds && *r.duration_seconds < shortest_seconds)
        worsen(reading, ReadingStatus::too_short,
               fmt::format("{:.3g} s measure nothing but the start", *r.duration_seconds));
    // A transaction skipped now and then is a stall; more is a rate that the service can't follow.
    if (t.skipped && t.skipped->count > 0) {
        const double share = count(t.skipped->count) / (count(t.skipped->count) + count(done));
        worsen(reading, share > 0.01 ? ReadingStatus::overload : ReadingStatus::suspect,
               fmt::format("{:.3g} % of the transactions were skipped, being late", 100 * share));
    }
    // Above capacity the lag grows as the run goes on, until it is most of the latency (which includes it).
    const double long_lag = r.duration_seconds ? 0.02 * *r.duration_seconds : 0.1;
    if (r.lag_mean_seconds && t.latency_mean_seconds && *r.lag_mean_seconds > 0.5 * *t.latency_mean_seconds &&
        *r.lag_mean_seconds > long_lag)
        worsen(reading, ReadingStatus::overload,
               fmt::format("the schedule lags by {:.3g} s on average: the asked rate is above capacity",
                           *r.lag_mean_seconds));
    if (rate_asked && t.transactions_per_second && *t.transactions_per_second < 0.9 * *rate_asked)
        worsen(reading, ReadingStatus::overload,
               fmt::format("{:.4g}/s of the asked {:.4g}/s came about", *t.transactions_per_second, *rate_asked));
}

} // namespace

Result<Reading> read_pgbench(const ToolOutput& output, std::optional<double> rate_asked) {
    PERFRIG_TRY(const PgbenchReport r, parse_pgbench_report(output.out, output.err));
    auto end = how_it_ended(output);
    if (!r.complete) {
        if (end.empty() && r.errors.empty())
            return fail(ErrorKind::bad_input, "read the report of", "pgbench", "the report is missing or cut off",
                        "look at the tool's raw output among the artifacts");
        if (end.empty()) end = "it exited with status 0";
        return no_result(r.errors.empty() ? end : r.errors.front() + " (" + end + ")");
    }
    Reading reading;
    add_totals(reading, r.totals, {});
    if (r.transactions_per_second_including_connections)
        add(reading, "transactions_per_second_including_connections", "1/s",
            r.transactions_per_second_including_connections);
    if (r.planned) add(reading, "planned_transactions", "count", count(*r.planned));
    if (r.duration_seconds) add(reading, "duration_seconds", "s", r.duration_seconds);
    if (r.initial_connection_seconds)
        add(reading, "initial_connection_time_seconds", "s", r.initial_connection_seconds);
    if (r.connection_seconds) add(reading, "connection_time_seconds", "s", r.connection_seconds, {{"stat", "mean"}});
    if (r.lag_mean_seconds) add(reading, "schedule_lag_seconds", "s", r.lag_mean_seconds, {{"stat", "mean"}});
    if (r.lag_max_seconds) add(reading, "schedule_lag_seconds", "s", r.lag_max_seconds, {{"stat", "max"}});
    // A closed loop, whose rate and latencies can be held against each other; reconnecting is in no latency.
    if (r.clients && !rate_asked && !r.reconnects) add(reading, "concurrency", "count", count(*r.clients));
    for (std::size_t i = 0; i < r.scripts.size(); ++i) {
        const Labels labels{{"script", std::to_string(i + 1)}};
        add_totals(reading, r.scripts[i].totals, labels);
        if (r.scripts[i].share) add(reading, "transactions_ratio", "ratio", r.scripts[i].share, labels);
        reading.facts["script_" + std::to_string(i + 1)] = r.scripts[i].name;
    }
    add_facts(reading, r);
    judge(reading, r, rate_asked);
    judge_elapsed(reading, output);
    if (!end.empty()) worsen(reading, ReadingStatus::invalid, end);
    if (reading.status == ReadingStatus::ok && r.reconnects)
        reading.reason = "a connection each transaction: not comparable with runs that keep theirs";
    return reading;
}

} // namespace perfrig
