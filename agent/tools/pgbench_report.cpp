#include "agent/tools/pgbench_report.hpp"

#include "agent/tools/text.hpp"

#include <array>

namespace perfrig {

namespace {

using text::take;

// A number with what follows it: "12.3 ms". A placeholder gives an empty value. False: neither.
bool printed(std::string_view s, std::optional<double>& out, double factor = 1) {
    const auto number = text::number(s);
    if (!number && !text::no_number(s)) return false;
    out = number ? std::optional(*number * factor) : std::nullopt;
    return true;
}

bool whole_into(std::string_view s, std::optional<std::uint64_t>& out) { return (out = text::whole(s)).has_value(); }

// "36.830%", "1.678 %", "NaN%"
bool percent(std::string_view s, std::optional<double>& out) {
    if (!s.ends_with('%')) return false;
    return printed(text::trim(s.substr(0, s.size() - 1)), out, 0.01);
}

// "3683 (36.830%)"
bool count_into(std::string_view s, std::optional<PgbenchCount>& out) {
    const auto open = s.find(" (");
    const auto n = text::whole(s.substr(0, open));
    if (!n) return false;
    PgbenchCount count{*n, std::nullopt};
    if (open != std::string_view::npos &&
        (!s.ends_with(')') || !percent(s.substr(open + 2, s.size() - open - 3), count.ratio)))
        return false;
    out = count;
    return true;
}

// "5.986 ms", "9.376 ms (including failures)": the rest after the unit is left in s.
bool milliseconds(std::string_view& s, std::optional<double>& out) {
    const auto unit = s.find(" ms");
    if (unit == std::string_view::npos || !printed(s.substr(0, unit), out, 1e-3)) return false;
    s.remove_prefix(unit + 3);
    return true;
}

class Reader {
  public:
    Result<PgbenchReport> read(std::string_view out, std::string_view err) {
        for (const auto line : text::lines(out)) {
            if (is_message(line)) continue;
            if (report_line(line)) {
                begun_ = true;
            } else if (begun_) {
                return fail(ErrorKind::bad_input, "read the report of", "pgbench",
                            "this line of it is not known: '" + std::string(line.substr(0, 120)) + "'",
                            "look at the tool's raw output among the artifacts");
            }
        }
        for (const auto line : text::lines(err)) {
            const auto trimmed = text::trim(line);
            if (!is_message(line) && !trimmed.empty()) report_.warnings.emplace_back(trimmed.substr(0, 200));
        }
        const auto& totals = report_.totals;
        report_.complete = begun_ && totals.transactions &&
                           (totals.transactions_per_second || *totals.transactions == 0 || rate_seen_);
        return std::move(report_);
    }

  private:
    // Messages of pgbench, of libpq and of the server; they go to stderr, between or around the report's lines.
    bool is_message(std::string_view line) {
        if (columns_ > 0 && (line.starts_with(' ') || line.starts_with('\t'))) return false;
        if (const auto progress = parse_pgbench_progress(line)) {
            report_.progress.push_back(*progress);
            return true;
        }
        const auto trimmed = text::trim(line);
        const auto has = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
        const bool aborted = has("Run was aborted") || (has("lient ") && has(" aborted"));
        constexpr std::array<std::string_view, 10> errors{
            "pgbench: error:",      "pgbench: fatal:",        "ERROR:",     "FATAL:",          "PANIC:",
            "connection to server", "Connection to database", "could not ", "Run was aborted", "client "};
        constexpr std::array<std::string_view, 10> warnings{
            "WARNING:", "NOTICE:", "pgbench: warning:", "pgbench: ", "INFO:",
            "LOG:",     "HINT:",   "DETAIL:",           "CONTEXT:",  "LINE "};
        constexpr std::array<std::string_view, 6> chatter{"starting vacuum", "vacuuming", "end.",
                                                          "dropping ",       "creating ", "progress: "};
        for (const auto prefix : errors)
            if (line.starts_with(prefix)) {
                // The server's own words are what a reader looks for.
                const auto inner = line.find("ERROR:  ");
                report_.errors.emplace_back(
                    text::trim(line.substr(inner == std::string_view::npos ? 0 : inner)).substr(0, 300));
                report_.aborted = report_.aborted || aborted;
                return true;
            }
        for (const auto prefix : warnings)
            if (line.starts_with(prefix)) {
                report_.warnings.emplace_back(trimmed.substr(0, 300));
                report_.aborted = report_.aborted || aborted;
                return true;
            }
        for (const auto prefix : chatter)
            if (line.starts_with(prefix)) return true;
        return trimmed.empty() || line.starts_with('\t'); // libpq continues a message after a tab
    }

    bool report_line(std::string_view line) {
        if (columns_ > 0 && statement(line)) return true;
        columns_ = 0;
        if (script_heading(line)) return true;
        auto* totals = report_.scripts.empty() ? &report_.totals : &report_.scripts.back().totals;
        if (!report_.scripts.empty()) {
            if (!take(line, " - ")) return false;
            return script_line(line, report_.scripts.back()) || totals_line(line, *totals) || statements_heading(line);
        }
        return heading_line(line) || totals_line(line, *totals) || run_line(line) || statements_heading(line);
    }

    bool heading_line(std::string_view line) {
        auto& r = report_;
        if (take(line, "pgbench (")) {
            r.version = line.substr(0, line.find_first_of(" ,)"));
            return true;
        }
        if (take(line, "transaction type: ")) return !(r.transaction_type = line).empty();
        if (take(line, "query mode: ")) return !(r.query_mode = line).empty();
        if (take(line, "partition method: ")) return !(r.partition_method = line).empty();
        if (take(line, "partitions: ")) return whole_into(line, r.partitions);
        if (take(line, "scaling factor: ")) return whole_into(line, r.scale);
        if (take(line, "number of clients: ")) return whole_into(line, r.clients);
        if (take(line, "number of threads: ")) return whole_into(line, r.threads);
        if (take(line, "maximum number of tries: ")) return whole_into(line, r.max_tries);
        if (take(line, "number of transactions per client: ")) return whole_into(line, r.transactions_per_client);
        if (take(line, "duration: "))
            return line.ends_with(" s") && printed(line.substr(0, line.size() - 2), r.duration_seconds);
        return false;
    }

    bool totals_line(std::string_view line, PgbenchTotals& t) {
        if (take(line, "number of transactions actually processed: ")) {
            const auto slash = line.find('/');
            if (slash != std::string_view::npos && !whole_into(line.substr(slash + 1), report_.planned)) return false;
            return whole_into(line.substr(0, slash), t.transactions);
        }
        if (take(line, "number of failed transactions: ") || take(line, "number of transactions failed: "))
            return count_into(line, t.failed);
        if (take(line, "number of serialization failures: ")) return count_into(line, t.serialization_failures);
        if (take(line, "number of deadlock failures: ")) return count_into(line, t.deadlock_failures);
        if (take(line, "number of other failures: ")) return count_into(line, t.other_failures);
        if (take(line, "number of transactions retried: ")) return count_into(line, t.retried);
        if (take(line, "number of transactions skipped: ")) return count_into(line, t.skipped);
        if (take(line, "total number of retries: ")) return whole_into(line, t.retries);
        if (take(line, "number of transactions above the ")) return above_limit(line, t);
        if (take(line, "latency average = ") || take(line, "latency average: ")) {
            if (!milliseconds(line, t.latency_mean_seconds)) return false;
            if (line == " (including failures)") report_.latency_includes_failures = true;
            return line.empty() || line == " (including failures)";
        }
        if (take(line, "latency stddev = ") || take(line, "latency stddev: "))
            return milliseconds(line, t.latency_stdev_seconds) && line.empty();
        return false;
    }

    // "50.0 ms latency limit: 106/6317 (1.678 %)"; before version 11 "106 (1.678 %)"
    bool above_limit(std::string_view line, PgbenchTotals& t) {
        std::optional<double> limit;
        if (!milliseconds(line, limit) || !limit || !take(line, " latency limit: ")) return false;
        const auto numbers = line.substr(0, line.find(" ("));
        const auto slash = numbers.find('/');
        const auto count = text::whole(numbers.substr(0, slash));
        const auto of = slash == std::string_view::npos ? t.transactions : text::whole(numbers.substr(slash + 1));
        if (!count || !of) return false;
        t.above_limit = {*limit, *count, *of};
        return true;
    }

    // Lines about the whole run alone.
    bool run_line(std::string_view line) {
        auto& r = report_;
        if (take(line, "initial connection time = "))
            return milliseconds(line, r.initial_connection_seconds) && line.empty();
        if (take(line, "average connection time = ")) return milliseconds(line, r.connection_seconds) && line.empty();
        if (take(line, "rate limit schedule lag: avg ")) {
            const auto middle = line.find(" (max ");
            if (middle == std::string_view::npos || !line.ends_with(") ms")) return false;
            return printed(line.substr(0, middle), r.lag_mean_seconds, 1e-3) &&
                   printed(line.substr(middle + 6, line.size() - middle - 10), r.lag_max_seconds, 1e-3);
        }
        if (!take(line, "tps = ")) return false;
        const auto open = line.find(" (");
        const auto kind = open == std::string_view::npos ? std::string_view{} : line.substr(open);
        const auto number = line.substr(0, open);
        rate_seen_ = true;
        if (kind == " (including connections establishing)")
            return printed(number, r.transactions_per_second_including_connections);
        if (kind == " (including reconnection times)")
            r.reconnects = true;
        else if (kind != " (without initial connection time)" && kind != " (excluding connections establishing)")
            return false;
        return printed(number, r.totals.transactions_per_second);
    }

    // "SQL script 1: <builtin: select only>"
    bool script_heading(std::string_view line) {
        if (!take(line, "SQL script ")) return false;
        const auto colon = line.find(": ");
        if (colon == std::string_view::npos || text::whole(line.substr(0, colon)) != report_.scripts.size() + 1)
            return false;
        report_.scripts.emplace_back().name = line.substr(colon + 2);
        return true;
    }

    // " - weight: 1 (targets 50.0% of total)", " - 1234 transactions (50.1% of total, tps = 123.4)"
    bool script_line(std::string_view line, PgbenchScript& script) {
        if (take(line, "weight: ")) return whole_into(line.substr(0, line.find(' ')), script.weight);
        const auto word = line.find(" transactions (");
        if (word == std::string_view::npos || !line.ends_with(')')) return false;
        if (!whole_into(line.substr(0, word), script.totals.transactions)) return false;
        line = line.substr(word + 15, line.size() - word - 16);
        const auto of = line.find(" of total");
        if (of == std::string_view::npos || !percent(line.substr(0, of), script.share)) return false;
        line.remove_prefix(of + 9);
        return line.empty() || (take(line, ", tps = ") && printed(line, script.totals.transactions_per_second));
    }

    // "statement latencies in milliseconds, failures and retries:" says how many columns follow.
    bool statements_heading(std::string_view line) {
        if (!take(line, "statement latencies in milliseconds") || !line.ends_with(':')) return false;
        line.remove_suffix(1);
        columns_ = line.empty() ? 1 : line == " and failures" ? 2 : line == ", failures and retries" ? 3 : 0;
        return columns_ > 0;
    }

    bool statement(std::string_view line) {
        if (!line.starts_with(' ') && !line.starts_with('\t')) return false;
        PgbenchStatement s;
        for (int column = 0; column < columns_; ++column) {
            line = text::trim(line);
            const auto field = line.substr(0, line.find_first_of(" \t"));
            const bool good = column == 0   ? printed(field, s.latency_seconds, 1e-3)
                              : column == 1 ? whole_into(field, s.failures)
                                            : whole_into(field, s.retries);
            if (!good) return false;
            line.remove_prefix(field.size());
        }
        s.text = text::trim(line);
        auto& totals = report_.scripts.empty() ? report_.totals : report_.scripts.back().totals;
        totals.statements.push_back(std::move(s));
        return true;
    }

    PgbenchReport report_;
    bool begun_ = false;
    bool rate_seen_ = false;
    int columns_ = 0; // of the statements that may follow; 0: none
};

} // namespace

std::optional<PgbenchProgress> parse_pgbench_progress(std::string_view line) {
    if (!take(line, "progress: ")) return std::nullopt;
    PgbenchProgress p;
    bool rate = false;
    bool time = false;
    while (!line.empty()) {
        const auto comma = line.find(", ");
        auto part = line.substr(0, comma);
        line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 2);
        const auto number = part.substr(0, part.find(' '));
        if (part.ends_with(" s") && part.size() == number.size() + 2) {
            const auto at = text::number(number);
            if (!at) return std::nullopt;
            p.at_seconds = *at;
            time = true;
        } else if (part.ends_with(" tps") && part.size() == number.size() + 4) {
            rate = printed(number, p.transactions_per_second);
        } else if (take(part, "lat ")) {
            const auto stddev = part.find(" ms stddev ");
            if (stddev == std::string_view::npos || !printed(part.substr(0, stddev), p.latency_mean_seconds, 1e-3) ||
                !printed(part.substr(stddev + 11), p.latency_stdev_seconds, 1e-3))
                return std::nullopt;
        } else if (part.ends_with(" failed")) {
            if (!whole_into(number, p.failed)) return std::nullopt;
        } else if (!part.starts_with("lag ") && !part.ends_with(" skipped") && !part.ends_with(" retried") &&
                   !part.ends_with(" retries")) {
            return std::nullopt;
        }
    }
    return rate && time ? std::optional(p) : std::nullopt;
}

Result<PgbenchReport> parse_pgbench_report(std::string_view out, std::string_view err) {
    return Reader().read(out, err);
}

} // namespace perfrig
