#include "agent/tools/reading.hpp"

#include "agent/tools/text.hpp"

#include <fmt/format.h>

namespace perfrig {

std::string_view to_string(ReadingStatus status) {
    switch (status) {
    case ReadingStatus::ok: return "ok";
    case ReadingStatus::suspect: return "suspect";
    case ReadingStatus::invalid: return "invalid";
    case ReadingStatus::too_short: return "too_short";
    case ReadingStatus::overload: return "overload";
    case ReadingStatus::no_result: return "no_result";
    }
    return "invalid";
}

const ToolMetric* Reading::find(std::string_view name, const Labels& labels) const {
    for (const auto& metric : metrics)
        if (metric.name == name && metric.labels == labels) return &metric;
    return nullptr;
}

namespace {
int weight(ReadingStatus status) {
    switch (status) {
    case ReadingStatus::ok: return 0;
    case ReadingStatus::suspect: return 1;
    case ReadingStatus::overload: return 2;
    case ReadingStatus::too_short: return 3;
    case ReadingStatus::invalid: return 4;
    case ReadingStatus::no_result: return 5;
    }
    return 5;
}
} // namespace

void worsen(Reading& reading, ReadingStatus status, std::string_view reason) {
    if (weight(status) < weight(reading.status)) return;
    if (status == reading.status && !reading.reason.empty())
        reading.reason += "; ";
    else
        reading.reason.clear();
    reading.reason += reason;
    reading.status = status;
}

std::string how_it_ended(const ToolOutput& output) {
    if (output.signal != 0) return fmt::format("signal {} ended it", output.signal);
    if (output.exit_code != 0) return fmt::format("it exited with status {}", output.exit_code);
    return {};
}

std::string last_line(std::string_view s) {
    const auto all = text::lines(s);
    for (auto line = all.rbegin(); line != all.rend(); ++line)
        if (const auto trimmed = text::trim(*line); !trimmed.empty()) return std::string(trimmed.substr(0, 200));
    return {};
}

Reading no_result(std::string reason) {
    Reading reading;
    reading.status = ReadingStatus::no_result;
    reading.reason = std::move(reason);
    return reading;
}

void judge_elapsed(Reading& reading, const ToolOutput& output) {
    if (!output.elapsed_seconds || !output.asked_seconds || *output.asked_seconds <= 0) return;
    const double asked = *output.asked_seconds;
    const double elapsed = *output.elapsed_seconds;
    if (elapsed < 0.9 * asked)
        worsen(reading, ReadingStatus::too_short, fmt::format("it ran for {:.3g} s of {:.3g} s", elapsed, asked));
    else if (elapsed > 1.25 * asked + 2)
        worsen(reading, ReadingStatus::suspect, fmt::format("it took {:.3g} s for {:.3g} s", elapsed, asked));
}

} // namespace perfrig
