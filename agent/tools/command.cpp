#include "agent/tools/command.hpp"

#include "agent/tools/option_values.hpp"
#include "agent/tools/reading.hpp"
#include "agent/tools/text.hpp"
#include "common/base/json.hpp"
#include "common/base/line_pattern.hpp"

#include <fmt/format.h>

namespace perfrig {

namespace {

constexpr std::size_t most_output = 4u << 20; // bytes that are searched; a report is at the end, so the end is kept

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
                PERFRIG_TRY(found, by_pattern(pick, stream));
            }
            const auto number = text::grouped_number(found);
            if (!number && !placeholder(found)) return missing(pick, "'" + found.substr(0, 80) + "' is no number");
            add(reading, pick.name, pick.unit, number ? std::optional(*number * pick.scale) : std::nullopt,
                pick.labels);
            if (!reading.metrics.back().value)
                worsen(reading, ReadingStatus::suspect, pick.name + " was printed as '" + found.substr(0, 80) + "'");
        }
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

    static Result<std::string> by_pattern(const Pick& pick, std::string_view stream) {
        const bool cut = stream.size() > most_output;
        if (cut) stream.remove_prefix(stream.size() - most_output);
        std::optional<std::string_view> found;
        int matches = 0;
        int too_long = 0;
        for (const auto line : text::lines(stream)) {
            too_long += line.size() > LinePattern::longest_line;
            const auto captured = pick.pattern->capture(line);
            if (!captured) continue;
            if (++matches == 1 || pick.take == Pick::Take::last) found = captured;
            if (pick.take == Pick::Take::first) break;
        }
        if (matches > 1 && pick.take == Pick::Take::only)
            return missing(pick, fmt::format("{} lines match; say take: first or last", matches));
        if (found) return std::string(text::trim(*found));
        std::string why = "no line matches";
        if (too_long > 0)
            why += fmt::format(" ({} lines are longer than {} bytes and were left out)", too_long,
                               LinePattern::longest_line);
        if (cut) why += fmt::format(" (only its last {} bytes were searched)", most_output);
        return missing(pick, why);
    }

    std::vector<std::string> argv_;
    std::optional<Nanoseconds> at_most_;
    std::vector<Pick> metrics_, series_;
};

} // namespace

std::unique_ptr<Tool> make_command(const nlohmann::json& options) { return std::make_unique<CommandTool>(options); }

} // namespace perfrig
