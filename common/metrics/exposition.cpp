#include "common/metrics/exposition.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace perfrig {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

void append_number(std::string& out, double value) {
    if (std::isnan(value)) {
        out += "NaN";
    } else if (std::isinf(value)) {
        out += value > 0 ? "+Inf" : "-Inf";
    } else {
        char text[32];
        out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
    }
}

std::string number(double value) {
    std::string out;
    append_number(out, value);
    return out;
}

// Help texts escape backslash and newline; label values the double quote too.
void append_escaped(std::string& out, std::string_view text, bool quotes) {
    for (const char c : text) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\n')
            out += "\\n";
        else if (c == '"' && quotes)
            out += "\\\"";
        else
            out += c;
    }
}

bool is_name(std::string_view name, bool colons) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    return std::all_of(name.begin(), name.end(), [colons](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               (colons && c == ':');
    });
}

std::string_view type_name(MetricType type) {
    switch (type) {
    case MetricType::Counter: return "counter";
    case MetricType::Gauge: return "gauge";
    case MetricType::Summary: return "summary";
    case MetricType::Histogram: return "histogram";
    case MetricType::Untyped: return "untyped";
    default: return "untyped"; // Info is OpenMetrics only
    }
}

class Writer {
  public:
    explicit Writer(std::string& out) : out_(out) {}

    void family(const MetricFamily& f) {
        if (!is_name(f.name, true)) throw std::invalid_argument("not a metric name: '" + f.name + "'");
        name_ = f.name;
        out_ += "# HELP " + f.name + " ";
        append_escaped(out_, f.help, false);
        out_ += "\n# TYPE " + f.name + " ";
        out_ += type_name(f.type);
        out_ += '\n';
        std::vector<std::pair<Labels, const ClientMetric*>> metrics;
        for (const ClientMetric& m : f.metric) {
            metrics.emplace_back(m.label, &m);
            std::sort(metrics.back().first.begin(), metrics.back().first.end());
        }
        std::stable_sort(metrics.begin(), metrics.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [labels, m] : metrics) metric(f.type, labels, *m);
    }

  private:
    void metric(MetricType type, const Labels& labels, const ClientMetric& m) {
        switch (type) {
        case MetricType::Counter: sample("", labels, {}, {}, m.counter.value, m); return;
        case MetricType::Gauge: sample("", labels, {}, {}, m.gauge.value, m); return;
        case MetricType::Summary: summary(labels, m); return;
        case MetricType::Histogram: histogram(labels, m); return;
        default: sample("", labels, {}, {}, m.untyped.value, m); return;
        }
    }

    void summary(const Labels& labels, const ClientMetric& m) {
        for (const auto& q : m.summary.quantile) sample("", labels, "quantile", number(q.quantile), q.value, m);
        sample("_sum", labels, {}, {}, m.summary.sample_sum, m);
        sample("_count", labels, {}, {}, static_cast<double>(m.summary.sample_count), m);
    }

    void histogram(const Labels& labels, const ClientMetric& m) {
        bool infinite = false;
        for (const auto& b : m.histogram.bucket) {
            infinite = std::isinf(b.upper_bound) && b.upper_bound > 0;
            sample("_bucket", labels, "le", number(b.upper_bound), static_cast<double>(b.cumulative_count), m);
        }
        const double count = static_cast<double>(m.histogram.sample_count);
        if (!infinite) sample("_bucket", labels, "le", "+Inf", count, m);
        sample("_sum", labels, {}, {}, m.histogram.sample_sum, m);
        sample("_count", labels, {}, {}, count, m);
    }

    void sample(std::string_view suffix, const Labels& labels, std::string_view extra, std::string_view extra_value,
                double value, const ClientMetric& m) {
        out_ += name_;
        out_ += suffix;
        char separator = '{';
        for (const auto& label : labels) append_label(separator, label.name, label.value);
        if (!extra.empty()) append_label(separator, extra, extra_value);
        if (separator == ',') out_ += '}';
        out_ += ' ';
        append_number(out_, value);
        if (m.timestamp_ms != 0) out_ += " " + std::to_string(m.timestamp_ms);
        out_ += '\n';
    }

    void append_label(char& separator, std::string_view name, std::string_view value) {
        if (!is_name(name, false)) throw std::invalid_argument("not a label name: '" + std::string(name) + "'");
        out_ += separator;
        out_ += name;
        out_ += "=\"";
        append_escaped(out_, value, true);
        out_ += '"';
        separator = ',';
    }

    std::string& out_;
    std::string name_;
};

} // namespace

std::string write_exposition(std::span<const MetricFamily> families) {
    std::vector<const MetricFamily*> sorted;
    for (const MetricFamily& f : families)
        if (!f.metric.empty()) sorted.push_back(&f);
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    std::string out;
    Writer writer(out);
    for (const MetricFamily* f : sorted) writer.family(*f);
    return out;
}

} // namespace perfrig
