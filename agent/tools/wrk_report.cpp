#include "agent/tools/wrk_report.hpp"

#include "agent/tools/text.hpp"

namespace perfrig {

namespace {

using Value = std::optional<double>;

// A number and its suffix. Outer nullopt: neither that nor a placeholder.
struct Suffix {
    std::string_view text;
    double factor;
};
constexpr std::array time_suffixes{Suffix{"us", 1e-6}, Suffix{"ms", 1e-3}, Suffix{"s", 1.0}, Suffix{"m", 60.0},
                                   Suffix{"h", 3600.0}};
constexpr std::array count_suffixes{Suffix{"", 1.0},  Suffix{"k", 1e3},  Suffix{"M", 1e6},
                                    Suffix{"G", 1e9}, Suffix{"T", 1e12}, Suffix{"P", 1e15}};
constexpr std::array byte_suffixes{
    Suffix{"B", 1.0},           Suffix{"KB", 1024.0},          Suffix{"MB", 1048576.0},
    Suffix{"GB", 1073741824.0}, Suffix{"TB", 1099511627776.0}, Suffix{"PB", 1125899906842624.0}};

template <std::size_t N> std::optional<Value> scaled(std::string_view s, const std::array<Suffix, N>& suffixes) {
    double number = 0;
    auto rest = s;
    if (!text::leading_number(rest, number)) {
        for (const auto& suffix : suffixes) // "-nan", "nanus"
            if (s.ends_with(suffix.text) && text::no_number(s.substr(0, s.size() - suffix.text.size()))) return Value{};
        return std::nullopt;
    }
    if (number < 0) return std::nullopt;
    for (const auto& suffix : suffixes)
        if (rest == suffix.text) return Value{number * suffix.factor};
    return std::nullopt;
}

// A latency of zero can't be measured: wrk prints it where it has no samples.
Value unless_zero(Value v) { return v && *v == 0 ? Value{} : v; }

bool percent(std::string_view s, Value& out) {
    if (text::no_number(s)) { // some builds print the placeholder without its sign
        out = std::nullopt;
        return true;
    }
    if (!s.ends_with('%')) return false;
    s.remove_suffix(1);
    const auto number = text::number(s);
    if (!number && !text::no_number(s)) return false;
    out = number ? Value{*number / 100} : Value{};
    return !number || (*number >= 0 && *number <= 100);
}

template <std::size_t N>
bool table_row(std::string_view rest, const std::array<Suffix, N>& suffixes, WrkReport::Row& row) {
    const auto fields = text::words(rest);
    if (fields.size() != 4) return false;
    Value* out[] = {&row.mean, &row.stdev, &row.max};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto value = scaled(fields[i], suffixes);
        if (!value) return false;
        *out[i] = *value;
    }
    return percent(fields[3], row.within_stdev);
}

// "Running 30s test @ http://..." : wrk prints the duration without decimals, rounded to its unit.
bool first_line(std::string_view line, WrkReport& report) {
    if (!text::take(line, "Running ")) return false;
    const auto at = line.find(" test @ ");
    if (at == std::string_view::npos) return false;
    report.asked = line.substr(0, at);
    report.url = text::trim(line.substr(at + 8));
    const auto seconds = scaled(report.asked, time_suffixes);
    if (!seconds || !*seconds) return false;
    report.asked_seconds = **seconds;
    const double unit = report.asked.ends_with('h') ? 3600 : report.asked.ends_with('m') ? 60 : 0;
    report.asked_least_seconds = report.asked_seconds - unit / 2;
    return true;
}

// "12 threads and 400 connections"
bool second_line(std::string_view line, WrkReport& report) {
    const auto w = text::words(line);
    if (w.size() != 5 || !w[1].starts_with("thread") || w[2] != "and" || !w[4].starts_with("connection")) return false;
    const auto threads = text::whole(w[0]);
    const auto connections = text::whole(w[3]);
    if (!threads || !connections) return false;
    report.threads = *threads;
    report.connections = *connections;
    return true;
}

// "99%   11.16ms", "99.999%  1.18s"
bool quantile_line(std::string_view line, WrkReport& report) {
    const auto w = text::words(line);
    if (w.size() != 2 || !w[0].ends_with('%')) return false;
    const auto digits = w[0].substr(0, w[0].size() - 1);
    const auto share = text::number(digits);
    const auto seconds = scaled(w[1], time_suffixes);
    if (!share || *share < 0 || *share > 100 || !seconds) return false;
    // The label is the printed percentage with its point moved two places, free of binary rounding.
    std::string label = std::to_string(*share / 100);
    while (label.ends_with('0')) label.pop_back();
    if (label.ends_with('.')) label.pop_back();
    report.quantiles.emplace_back(std::move(label), unless_zero(*seconds));
    return true;
}

// "829 requests in 30.06s, 294.68KB read"
bool totals_line(std::string_view line, WrkReport& report) {
    const auto w = text::words(line);
    if (w.size() != 6 || w[1] != "requests" || w[2] != "in" || w[5] != "read" || !w[3].ends_with(',')) return false;
    const auto requests = text::whole(w[0]);
    const auto elapsed = scaled(w[3].substr(0, w[3].size() - 1), time_suffixes);
    const auto bytes = scaled(w[4], byte_suffixes);
    if (!requests || !elapsed || !bytes || !*bytes) return false;
    report.requests = *requests;
    report.bytes_read = **bytes;
    report.elapsed_seconds = *elapsed;
    // wrk takes wall-clock microseconds into an unsigned number: below zero reads as half a million years.
    constexpr double year = 31'557'600;
    if (report.elapsed_seconds && *report.elapsed_seconds > 100 * year) report.elapsed_seconds = std::nullopt;
    return true;
}

// "Socket errors: connect 0, read 8089, write 0, timeout 0"
bool errors_line(std::string_view line, WrkReport& report) {
    if (!text::take(line, "Socket errors: ")) return false;
    const auto w = text::words(line);
    constexpr std::array<std::string_view, 4> kinds{"connect", "read", "write", "timeout"};
    std::uint64_t* out[] = {&report.connect_errors, &report.read_errors, &report.write_errors, &report.timeouts};
    if (w.size() != 8) return false;
    for (std::size_t i = 0; i < 4; ++i) {
        auto count = w[2 * i + 1];
        if (i < 3) {
            if (!count.ends_with(',')) return false;
            count.remove_suffix(1);
        }
        const auto n = text::whole(count);
        if (w[2 * i] != kinds[i] || !n) return false;
        *out[i] = *n;
    }
    return true;
}

bool status_line(std::string_view line, WrkReport& report) {
    if (!text::take(line, "Non-2xx or 3xx responses:")) return false;
    const auto n = text::whole(text::trim(line));
    if (!n) return false;
    report.status_errors = *n;
    return true;
}

Error mismatch(std::string_view wanted, std::string_view got) {
    return fail(ErrorKind::bad_input, "read the report of", "wrk",
                "expected " + std::string(wanted) + ", found " +
                    (got.empty() ? "the end of the output" : "'" + std::string(got.substr(0, 120)) + "'"),
                "look at the tool's raw output among the artifacts");
}

} // namespace

Result<WrkReport> parse_wrk_report(std::string_view whole) {
    WrkReport report;
    const auto all = text::lines(whole);
    std::size_t next = 0;
    const auto current = [&] {
        while (next < all.size() && text::trim(all[next]).empty()) ++next;
        return next < all.size() ? text::trim(all[next]) : std::string_view{};
    };
    while (next < all.size() && !all[next].starts_with("Running ")) {
        if (!text::trim(all[next]).empty()) report.script_output.emplace_back(all[next]);
        ++next;
    }
    const auto expect = [&](bool matched, std::string_view wanted) -> Result<void> {
        if (!matched) return mismatch(wanted, current());
        ++next;
        return {};
    };
    PERFRIG_CHECK(expect(first_line(current(), report), "'Running TIME test @ URL'"));
    PERFRIG_CHECK(expect(second_line(current(), report), "'N threads and M connections'"));
    const auto heading = text::words(current());
    PERFRIG_CHECK(expect(heading.size() == 7 && heading[0] == "Thread" && heading[1] == "Stats", "'Thread Stats'"));
    auto line = current();
    PERFRIG_CHECK(
        expect(text::take(line, "Latency ") && table_row(line, time_suffixes, report.latency), "'Latency' row"));
    line = current();
    PERFRIG_CHECK(
        expect(text::take(line, "Req/Sec ") && table_row(line, count_suffixes, report.per_thread), "'Req/Sec' row"));
    report.latency.mean = unless_zero(report.latency.mean);
    report.latency.stdev = unless_zero(report.latency.stdev);
    report.latency.max = unless_zero(report.latency.max);
    if (current() == "Latency Distribution") {
        ++next;
        PERFRIG_CHECK(expect(quantile_line(current(), report), "a percentile"));
        while (quantile_line(current(), report)) ++next;
    }
    PERFRIG_CHECK(expect(totals_line(current(), report), "'N requests in TIME, SIZE read'"));
    if (current().starts_with("Socket errors")) PERFRIG_CHECK(expect(errors_line(current(), report), "socket errors"));
    if (current().starts_with("Non-2xx")) PERFRIG_CHECK(expect(status_line(current(), report), "a count of answers"));
    line = current();
    const bool rate = text::take(line, "Requests/sec:");
    line = text::trim(line);
    report.requests_per_second = text::number(line);
    PERFRIG_CHECK(expect(rate && (report.requests_per_second || text::no_number(line)), "'Requests/sec: N'"));
    line = current();
    const auto bytes = text::take(line, "Transfer/sec:") ? scaled(text::trim(line), byte_suffixes) : std::nullopt;
    PERFRIG_CHECK(expect(bytes.has_value(), "'Transfer/sec: SIZE'"));
    report.bytes_per_second = *bytes;
    if (!report.elapsed_seconds) report.requests_per_second = report.bytes_per_second = std::nullopt;
    for (; next < all.size(); ++next) {
        if (all[next].starts_with("Running ")) return mismatch("the end of one report", all[next]);
        if (!text::trim(all[next]).empty()) report.script_output.emplace_back(all[next]);
    }
    return report;
}

} // namespace perfrig
