#include "agent/run/run_recorder.hpp"

#include "common/base/log.hpp"
#include "common/experiment/resolved.hpp"
#include "common/protocol/sample_frame.hpp"

#include <algorithm>

namespace perfrig {

namespace {
// Series of tools' live lines count from here; collectors count from 1 and never get this far.
constexpr std::uint32_t first_live_series = 1'000'000'000;
constexpr std::size_t most_samples_in_frame = 80'000; // 960 kB: below a record's bound
constexpr std::size_t most_live_series = 1'000;
constexpr int most_live_values = 100; // of one series in a second: each is a record, and its tool waits for us

std::vector<std::string> longest_first(std::vector<std::string> secrets) { // one may contain another
    std::sort(secrets.begin(), secrets.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return secrets;
}

// Everything but the words and hashes of the protocol itself: a secret "tool" must not make an event that the
// controller can't read, nor "beef" an artifact whose hash is wrong.
Json redacted_event(const Json& event, const std::vector<std::string>& secrets) {
    Json out = redact(event, secrets);
    for (const char* key :
         {"event", "state", "kind", "severity", "source", "status", "when", "boot_id", "fingerprint", "sha256"})
        if (event.contains(key)) out[key] = event[key];
    if (event["event"] == "phase_started") out["name"] = event["name"];
    return out;
}

constexpr std::size_t most_collector_errors = 50; // findings of one run
} // namespace

RunRecorder::RunRecorder(EventSink& sink, const Clock& clock, std::int64_t block, std::int64_t run,
                         std::vector<std::string> secrets, Interrupt& interrupt)
    : sink_(sink), clock_(clock), block_(block), run_(run), secrets_(longest_first(std::move(secrets))),
      interrupt_(interrupt) {}

std::string RunRecorder::redacted(std::string text) const { return redact(std::move(text), secrets_); }

Result<void> RunRecorder::write(const protocol::RunEventBody& body) {
    std::string text = protocol::encode(protocol::RunEvent{run_, block_, clock_.monotonic_ns(), body});
    if (!secrets_.empty()) {
        PERFRIG_TRY(const Json json, parse_json(text, "a run event"));
        text = canonical_json(redacted_event(json, secrets_));
    }
    return sink_.append_event(text);
}

void RunRecorder::note(const Result<void>& outcome) {
    if (!outcome) interrupt_.set(Interrupt::Kind::broken, outcome.error().text());
}

void RunRecorder::event(protocol::RunEventBody body) { note(write(body)); }

void RunRecorder::state(std::string state, std::string reason, Milliseconds deadline) {
    event(protocol::StateChanged{std::move(state), std::move(reason), deadline.count()});
    sync();
}

Result<void> RunRecorder::end(std::string state, std::string reason) {
    PERFRIG_CHECK(write(protocol::StateChanged{std::move(state), std::move(reason), 0}));
    return sink_.sync();
}

void RunRecorder::finding(std::string check, std::string severity, std::string subject, std::string message,
                          Json evidence) {
    event(protocol::Found{std::move(check), std::move(severity), std::move(subject), std::move(message),
                          std::move(evidence)});
}

void RunRecorder::sync() { note(sink_.sync()); }

void RunRecorder::write_samples(std::int64_t time_ns, const std::vector<std::pair<int, double>>& values) {
    for (std::size_t from = 0; from < values.size(); from += most_samples_in_frame) {
        protocol::SampleFrame frame{run_, time_ns, {}};
        for (std::size_t i = from; i < values.size() && i < from + most_samples_in_frame; ++i)
            frame.samples.push_back({static_cast<std::uint32_t>(values[i].first), values[i].second});
        const auto stored = sink_.append_samples(protocol::encode_samples(frame));
        if (!stored) {
            note(stored.error());
        } else if (*stored == EventSink::Stored::refused_full) {
            const std::lock_guard lock(mutex_);
            ++refused_frames_;
        }
    }
}

void RunRecorder::tick(const Tick& tick) {
    for (const SeriesInfo& series : tick.new_series)
        event(protocol::SeriesDeclared{static_cast<std::uint32_t>(series.id), series.name, series.unit,
                                       series.kind == SeriesKind::counter ? "counter" : "gauge", series.labels});
    write_samples(tick.at_ns, tick.values);
    for (const std::string& text : tick.findings) finding("collectors", "info", "collectors", text);
    for (const std::string& text : tick.collector_errors) {
        {
            const std::lock_guard lock(mutex_);
            if (++collector_errors_ > most_collector_errors) continue;
        }
        finding("collectors", "warning", "collectors", text);
    }
}

void RunRecorder::live(const std::string& name, const std::string& unit, std::map<std::string, std::string> labels,
                       double value) {
    std::string key = name;
    for (const auto& [label, text] : labels) key += '\0' + label + '\0' + text;
    std::uint32_t id = 0;
    bool fresh = false;
    {
        const std::lock_guard lock(mutex_);
        const auto found = live_series_.find(key);
        if (found == live_series_.end() && live_series_.size() >= most_live_series) return;
        fresh = found == live_series_.end();
        const auto next = first_live_series + static_cast<std::uint32_t>(live_series_.size());
        LiveSeries& series = fresh ? live_series_[key] : found->second;
        if (fresh) series.id = next;
        id = series.id;
        if (const std::int64_t second = clock_.monotonic_ns() / 1'000'000'000; series.second != second)
            series.second = second, series.values = 0;
        if (++series.values > most_live_values) {
            ++live_left_out_;
            return;
        }
    }
    if (fresh) event(protocol::SeriesDeclared{id, name, unit, "gauge", std::move(labels)});
    write_samples(clock_.monotonic_ns(), {{static_cast<int>(id), value}});
}

std::uint64_t RunRecorder::live_left_out() const {
    const std::lock_guard lock(mutex_);
    return live_left_out_;
}

std::uint64_t RunRecorder::refused_frames() const {
    const std::lock_guard lock(mutex_);
    return refused_frames_;
}

} // namespace perfrig
