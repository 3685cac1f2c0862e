#include "agent/tools/command.hpp"

#include "agent/tools/option_values.hpp"
#include "agent/tools/reading.hpp"
#include "agent/tools/text.hpp"
#include "common/base/json.hpp"
#include "common/base/line_pattern.hpp"

#include <fmt/format.h>

namespace perfrig {

namespace {

constexpr std::size_t most_output = 4u << 20; // bytes searched for the first or the last match, and of JSON

struct Pick { // how to find one number
    std::string name, unit;
    std::optional<LinePattern> pattern;
    std::optional<Json::json_pointer> pointer;
    std::string pointer_text;
    bool from_stderr = false;
    enum class Take { only, first, last } take = Take::only;
    double scale = 1;
    Labels labels;
};

// What stands for a number that a program does not have.
bool placeholder(std::string_view s) {
    if (text::no_number(s)) return true;
    for (const std::string_view word : {"", "-", "N/A", "n/a", "null", "none", "None"})
        if (s == word) return true;
    return false;
}

class CommandTool final : public Tool {
  public:
    explicit CommandTool(const Json& options) {
        const OptionValues values(options);
        argv_ = values.texts("command");
        if (options.at("command").is_string()) argv_.insert(argv_.begin(), {"/bin/sh", "-c"});
        at_most_ = values.duration("at_most");
        ends_by_itself_ = values.boolean("ends_by_itself", false);
        for (const auto& entry : options.at("metrics")) metrics_.push_back(make_pick(entry));
        if (const auto series = options.find("series"); series != options.end())
            for (const auto& entry : *series) series_.push_back(make_pick(entry));
    }

    std::string_view name() const override { return "command"; }

    Result<ToolInvocation> invocation(ToolPhase phase, Nanoseconds duration) const override {
        const std::string phase_name = phase == ToolPhase::measure ? "measure" : "warm_up";
        const std::string time = fmt::format("{}", std::chrono::duration<double>(duration).count());
        ToolInvocation call;
        call.argv = argv_;
        call.environment = forced_tool_environment();
        call.environment["PERFRIG_PHASE"] = phase_name;
        call.environment["PERFRIG_DURATION_SECONDS"] = time;
        call.at_most = at_most_.value_or(duration + std::chrono::minutes(1));
        return call;
    }

    Result<Reading> parse(const ToolOutput& output) const override {
        if (const auto end = how_it_ended(output); !end.empty()) {
            const auto said = last_line(output.err.empty() ? output.out : output.err);
            return no_result(said.empty() ? end : said + " (" + end + ")");
        }
        Reading reading;
        std::optional<Json> documents[2];
        for (const auto& pick : metrics_) {
            const auto stream = pick.from_stderr ? output.err : output.out;
            std::string found;
            if (pick.pointer) {
                auto& document = documents[pick.from_stderr ? 1 : 0];
                if (stream.size() > most_output)
                    return missing(pick, fmt::format("its output is longer than {} bytes", most_output));
                if (!document) {
                    PERFRIG_TRY(document,
                                parse_json(stream, pick.from_stderr ? "the command's stderr" : "the command's stdout"));
                }
                PERFRIG_TRY(found, by_pointer(pick, *document));
            } else {
                const auto dropped = pick.from_stderr ? output.err_dropped_bytes : output.out_dropped_bytes;
                PERFRIG_TRY(found, by_pattern(pick, stream, dropped));
                if (dropped > 0 && pick.take == Pick::Take::only)
                    worsen(reading, ReadingStatus::suspect,
                           fmt::format("that only one line gives {} is not sure: {} bytes of the output were dropped",
                                       pick.name, dropped));
            }
            const auto number = text::grouped_number(found);
            if (!number && !placeholder(found)) return missing(pick, "'" + found.substr(0, 80) + "' is no number");
            add(reading, pick.name, pick.unit, number ? std::optional(*number * pick.scale) : std::nullopt,
                pick.labels);
            if (!reading.metrics.back().value)
                worsen(reading, ReadingStatus::suspect, pick.name + " was printed as '" + found.substr(0, 80) + "'");
        }
        if (!ends_by_itself_) judge_length(reading, output);
        return reading;
    }

    std::optional<LiveSample> parse_live_line(std::string_view line, bool from_stderr) const override {
        if (line.ends_with('\r')) line.remove_suffix(1);
        for (const auto& pick : series_) {
            if (pick.from_stderr != from_stderr) continue;
            const auto found = pick.pattern->capture(line);
            const auto number = found ? text::grouped_number(text::trim(*found)) : std::nullopt;
            if (number && std::isfinite(*number * pick.scale))
                return LiveSample{pick.name, pick.unit, *number * pick.scale, pick.labels};
        }
        return std::nullopt;
    }

  private:
    // The options were checked, so compiling succeeds.
    static Pick make_pick(const Json& entry) {
        const OptionValues values(entry);
        Pick pick;
        pick.name = values.text("name").value_or("");
        pick.unit = values.text("unit").value_or("");
        if (const auto pattern = values.text("pattern")) pick.pattern = LinePattern::compile(*pattern).value();
        if (const auto pointer = values.text("pointer")) {
            pick.pointer = Json::json_pointer(*pointer);
            pick.pointer_text = *pointer;
        }
        pick.from_stderr = values.text("from") == "stderr";
        const auto take = values.text("take").value_or("only");
        pick.take = take == "first" ? Pick::Take::first : take == "last" ? Pick::Take::last : Pick::Take::only;
        pick.scale = values.number("scale").value_or(1);
        pick.labels = values.text_map("labels");
        return pick;
    }

    static Error missing(const Pick& pick, std::string why) {
        return fail(ErrorKind::bad_input, "find the metric " + pick.name + " in the output of", "the command",
                    std::move(why),
                    "look at the tool's raw output among the artifacts, then at the metric's " +
                        std::string(pick.pointer ? "pointer " + pick.pointer_text : "pattern " + pick.pattern->text()));
    }

    static Result<std::string> by_pointer(const Pick& pick, const Json& document) {
        if (!document.contains(*pick.pointer)) return missing(pick, "there is nothing at " + pick.pointer_text);
        const Json& value = document.at(*pick.pointer);
        if (value.is_string()) return value.get<std::string>();
        if (value.is_number() || value.is_null()) return value.dump();
        return missing(pick, std::string("there is ") + (value.is_structured() ? "no single value" : "a truth value") +
                                 " at " + pick.pointer_text);
    }

    // Whole lines that the match can be told from: the beginning for the first, the end for the last, all for the only
    // one. Where bytes were dropped, the two lines that this tore are left out: half a number is a number too.
    static std::vector<std::string_view> searched(const Pick& pick, std::string_view stream, std::uint64_t dropped) {
        if (stream.starts_with("\xEF\xBB\xBF")) stream.remove_prefix(3);
        auto head = stream, tail = stream;
        if (const auto mark = dropped_mark(dropped); dropped > 0) {
            const auto at = std::min(stream.find(mark), stream.size());
            head = stream.substr(0, at);
            head = head.substr(0, head.rfind('\n') + 1); // npos + 1 is 0
            tail = from_next_line(stream.substr(std::min(at + mark.size(), stream.size())));
        }
        if (pick.take == Pick::Take::only) return dropped > 0 ? std::vector{head, tail} : std::vector{stream};
        if (pick.take == Pick::Take::first)
            return {head.size() <= most_output ? head : head.substr(0, head.rfind('\n', most_output) + 1)};
        return {tail.size() <= most_output ? tail : from_next_line(tail.substr(tail.size() - most_output))};
    }
    static std::string_view from_next_line(std::string_view s) {
        return s.substr(std::min(s.find('\n'), s.size() - 1) + 1);
    }

    // Its numbers are held against a phase of the asked length, which it cut short by ending early.
    static void judge_length(Reading& reading, const ToolOutput& output) {
        if (!output.elapsed_seconds || !output.asked_seconds) return;
        if (*output.elapsed_seconds < 0.9 * *output.asked_seconds)
            worsen(
                reading, ReadingStatus::suspect,
                fmt::format("it ran for {:.3g} s of {:.3g} s, and the phase ended with it (ends_by_itself: true says "
                            "that its length is its own)",
                            *output.elapsed_seconds, *output.asked_seconds));
    }

    static Result<std::string> by_pattern(const Pick& pick, std::string_view stream, std::uint64_t dropped) {
        const auto whole = stream.size();
        const auto parts = searched(pick, stream, dropped);
        std::optional<std::string_view> found;
        int matches = 0;
        int too_long = 0;
        for (auto part : parts) {
            while (!part.empty() && !(matches > 0 && pick.take == Pick::Take::first)) {
                const auto end = part.find('\n');
                auto line = part.substr(0, end);
                part.remove_prefix(end == std::string_view::npos ? part.size() : end + 1);
                if (line.ends_with('\r')) line.remove_suffix(1);
                too_long += line.size() > LinePattern::longest_line;
                const auto captured = pick.pattern->capture(line);
                if (captured && (++matches == 1 || pick.take == Pick::Take::last)) found = captured;
            }
        }
        if (matches > 1 && pick.take == Pick::Take::only)
            return missing(pick, fmt::format("{} lines match; say take: first or last", matches));
        if (found) return std::string(text::trim(*found));
        std::string why = "no line matches";
        if (too_long > 0)
            why += fmt::format(" ({} lines are longer than {} bytes and were left out)", too_long,
                               LinePattern::longest_line);
        const bool last = pick.take == Pick::Take::last;
        if (pick.take != Pick::Take::only && (whole > most_output || dropped > 0))
            why += fmt::format(" (only its {} {} bytes were searched)", last ? "last" : "first", parts.front().size());
        return missing(pick, why);
    }

    std::vector<std::string> argv_;
    std::optional<Nanoseconds> at_most_;
    bool ends_by_itself_ = false;
    std::vector<Pick> metrics_, series_;
};

} // namespace

std::unique_ptr<Tool> make_command(const nlohmann::json& options) { return std::make_unique<CommandTool>(options); }

} // namespace perfrig
