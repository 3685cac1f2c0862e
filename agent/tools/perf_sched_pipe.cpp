#include "agent/tools/perf_sched_pipe.hpp"

#include "agent/tools/option_values.hpp"
#include "agent/tools/perf_bench_report.hpp"
#include "agent/tools/reading.hpp"
#include "agent/tools/text.hpp"

#include <fmt/format.h>

namespace perfrig {

namespace {

class PerfSchedPipe final : public Tool {
  public:
    PerfSchedPipe(std::int64_t loops, bool threads) : loops_(loops), threads_(threads) {}

    std::string_view name() const override { return "perf-sched-pipe"; }

    Result<ToolInvocation> invocation(ToolPhase phase, Nanoseconds) const override {
        ToolInvocation call;
        const auto loops = phase == ToolPhase::measure ? loops_ : std::max<std::int64_t>(1, loops_ / 10);
        call.argv = {"perf", "bench", "sched", "pipe", "-l", std::to_string(loops)};
        if (threads_) call.argv.push_back("-T");
        call.environment = forced_tool_environment();
        // A few microseconds an operation are usual, some tens in a virtual machine across CPUs.
        call.at_most = std::chrono::seconds(30) + std::chrono::microseconds(500) * loops;
        return call;
    }

    Result<Reading> parse(const ToolOutput& output) const override {
        const auto end = how_it_ended(output);
        const auto report = parse_perf_bench_report(output.out);
        const auto wrong = report ? missing(*report) : report.error().why;
        if (!wrong.empty()) {
            const auto said = last_line(output.err);
            if (!end.empty()) return no_result(said.empty() ? end : said + " (" + end + ")");
            return fail(ErrorKind::bad_input, "read the report of", "perf bench sched pipe", wrong,
                        "look at the tool's raw output among the artifacts");
        }
        Reading reading;
        add(reading, "operation_seconds", "s", report->operation_seconds);
        add(reading, "operations_per_second", "1/s", report->operations_per_second);
        add(reading, "operations", "count", count(report->operations.value_or(0)));
        add(reading, "total_seconds", "s", report->total_seconds);
        reading.facts = {{"between", report->kind}};
        if (report->operations == 0U) worsen(reading, ReadingStatus::invalid, "no operation was executed");
        if (report->placeholder) worsen(reading, ReadingStatus::suspect, "a printed figure is no number");
        // The total is printed in milliseconds: under 10 ms its last digit is more than a tenth of a percent of it.
        if (report->total_seconds.value_or(0) < 0.01)
            worsen(reading, ReadingStatus::too_short,
                   fmt::format("{:.3g} s are over before the two have met; more loops are needed",
                               report->total_seconds.value_or(0)));
        if (!end.empty()) worsen(reading, ReadingStatus::invalid, end + " after its report");
        return reading;
    }

    std::vector<std::string> version_argv() const override { return {"perf", "--version"}; }
    Result<std::string> parse_version(std::string_view out, std::string_view err) const override {
        for (const auto line : text::lines(out)) // "perf version 6.1.192"
            if (const auto w = text::words(line); w.size() >= 3 && w[0] == "perf" && w[1] == "version")
                return std::string(w[2]);
        return Tool::parse_version(out, err);
    }

  private:
    std::string missing(const PerfBenchReport& r) const {
        if (r.bench != "sched/pipe") return "it is no report of sched/pipe but of '" + r.bench.substr(0, 64) + "'";
        if (r.reports != 1) return "more than one report stands in it";
        if (!r.operations) return "the number of operations is missing";
        if (r.kind != (threads_ ? "threads" : "processes")) return "it ran between two " + r.kind.substr(0, 64);
        if (!r.total_seconds) return "the total time is missing";
        if (!r.placeholder && (!r.operation_seconds || !r.operations_per_second))
            return "usecs/op or ops/sec is missing";
        return {};
    }

    std::int64_t loops_;
    bool threads_;
};

} // namespace

std::unique_ptr<Tool> make_perf_sched_pipe(const OptionValues& options) {
    return std::make_unique<PerfSchedPipe>(options.integer("loops", 1'000'000), options.boolean("threads", false));
}

} // namespace perfrig
