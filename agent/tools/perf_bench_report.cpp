#include "agent/tools/perf_bench_report.hpp"

#include "agent/tools/text.hpp"

namespace perfrig {

namespace {

Error mismatch(std::string why) {
    return fail(ErrorKind::bad_input, "read the report of", "perf bench", std::move(why),
                "look at the tool's raw output among the artifacts");
}

class Reader {
  public:
    Result<PerfBenchReport> read(std::string_view whole) {
        for (const auto raw : text::lines(whole)) {
            const auto line = text::trim(raw);
            if (line.empty()) continue;
            if (line.starts_with("# Running ")) {
                if (!running(line)) return mismatch("'" + std::string(line.substr(0, 120)) + "' names no benchmark");
                ++report_.reports;
            } else if (const auto w = text::words(line); comment(line, w) || value(w) || averaged(line) || counter(w)) {
                ++known_;
            }
        }
        if (known_ == 0) return mismatch("no line of it is known");
        return std::move(report_);
    }

  private:
    bool running(std::string_view line) { // # Running 'sched/pipe' benchmark:
        const auto open = line.find('\'');
        const auto close = line.rfind('\'');
        if (open == close || close == open + 1) return false;
        report_.bench = line.substr(open + 1, close - open - 1);
        return true;
    }

    bool number(std::string_view field, std::optional<double>& out, double factor = 1) {
        const auto n = text::grouped_number(field);
        if (!n && !text::no_number(field)) return false;
        if (n)
            out = *n * factor;
        else
            report_.placeholder = true;
        return true;
    }

    bool comment(std::string_view line, const std::vector<std::string_view>& w) {
        if (line.starts_with("Run summary")) { // Run summary [PID 24373]: 2 threads, ...
            for (std::size_t i = 1; i < w.size(); ++i)
                if (w[i].starts_with("thread")) report_.threads = text::whole(w[i - 1]);
            return report_.threads.has_value();
        }
        if (w[0] != "#") return false;
        // # Executed 1000 pipe operations between two processes; # Executed 10,000,000 getppid() calls
        if (w.size() >= 5 && w[1] == "Executed") {
            const auto n = text::grouped_number(w[2]);
            if (!n || *n < 0 || *n > 9e15 || *n != std::floor(*n)) return false;
            report_.operations = static_cast<std::uint64_t>(*n);
            if (w.size() == 8) report_.kind = w[7];
            return true;
        }
        if (w.size() == 7 && w[2] == "groups") { // # 2 groups == 80 processes run
            report_.groups = text::whole(w[1]);
            report_.tasks = text::whole(w[4]);
            report_.kind = w[5];
            return report_.groups && report_.tasks;
        }
        return false;
    }

    bool value(const std::vector<std::string_view>& w) {
        if (w.size() == 4 && w[0] == "Total" && w[1] == "time:" && w[3] == "[sec]")
            return number(w[2], report_.total_seconds);
        if (w.size() == 1 && report_.bench.empty() && !report_.total_seconds)
            return number(w[0], report_.total_seconds);
        if (w.size() != 2) return false;
        if (w[1] == "usecs/op") return number(w[0], report_.operation_seconds, 1e-6);
        if (w[1] == "ops/sec") return number(w[0], report_.operations_per_second);
        if (w[1] == "KB/sec") return number(w[0], report_.bytes_per_second, 1024.0);
        if (w[1] == "MB/sec") return number(w[0], report_.bytes_per_second, 1048576.0);
        if (w[1] == "GB/sec") return number(w[0], report_.bytes_per_second, 1073741824.0);
        return false;
    }

    // Averaged 295936 operations/sec (+- 2.08%), total secs = 1
    bool averaged(std::string_view line) {
        const auto w = text::words(line);
        if (w.size() != 9 || w[0] != "Averaged" || w[2] != "operations/sec" || w[3] != "(+-" || !w[4].ends_with("%),"))
            return false;
        return number(w[1], report_.operations_per_second) &&
               number(w[4].substr(0, w[4].size() - 3), report_.stdev_ratio, 0.01) &&
               number(w[8], report_.total_seconds);
    }

    // 3426710073      cycles                (65.92%)
    bool counter(const std::vector<std::string_view>& w) {
        PerfBenchReport::Counter c;
        std::size_t name = 1;
        if (w.size() >= 3 && w[0] == "<not" && (w[1] == "supported>" || w[1] == "counted>"))
            name = 2;
        else if (!(c.value = text::grouped_number(w[0])) || w.size() < 2)
            return false;
        const auto last = w.back();
        if (last.starts_with('(') && last.ends_with("%)"))
            if (const auto share = text::number(last.substr(1, last.size() - 3))) c.running_ratio = *share / 100;
        if (name + 1 < w.size() && !w[name + 1].starts_with('#') && !w[name + 1].starts_with('(')) return false;
        return report_.counters.emplace(w[name], c).second;
    }

    PerfBenchReport report_;
    int known_ = 0;
};

} // namespace

Result<PerfBenchReport> parse_perf_bench_report(std::string_view text) { return Reader().read(text); }

} // namespace perfrig
