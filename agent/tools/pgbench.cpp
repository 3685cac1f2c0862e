#include "agent/tools/pgbench.hpp"

#include "agent/tools/option_values.hpp"
#include "agent/tools/text.hpp"

#include <fmt/format.h>

namespace perfrig {

namespace {

using std::chrono::seconds;

class Pgbench final : public Tool {
  public:
    explicit Pgbench(const OptionValues& options) : rate_(options.number("rate")) {
        environment_ = forced_tool_environment();
        if (const auto uri = options.text("uri")) environment_["PGDATABASE"] = *uri;
        for (const auto& [option, variable] :
             {std::pair{"database", "PGDATABASE"}, {"host", "PGHOST"}, {"user", "PGUSER"}})
            if (const auto value = options.text(option)) environment_[variable] = *value;
        if (options.has("port")) environment_["PGPORT"] = std::to_string(options.integer("port", 5432));

        clients_ = options.integer("clients", 1);
        arguments_ = {"-c", std::to_string(clients_),
                      "-j", std::to_string(options.integer("threads", 1)),
                      "-M", options.text("protocol").value_or("simple")};
        const auto scripts = options.texts("scripts");
        for (std::size_t i = 0; i < scripts.size(); ++i) {
            files_.push_back({fmt::format("script-{}.sql", i + 1), scripts[i]});
            push("-f", files_.back().name);
        }
        const auto script_files = options.texts("script_files");
        for (const auto& file : script_files) push("-f", file);
        if (options.boolean("select_only", false))
            push("-b", "select-only");
        else if (const auto builtin = options.text("builtin"))
            push("-b", *builtin);
        if (rate_) push("-R", fmt::format("{}", *rate_));
        if (const auto limit = options.duration("latency_limit"))
            push("-L", fmt::format("{}", std::chrono::duration<double, std::milli>(*limit).count()));
        if (options.has("max_tries")) push("--max-tries", std::to_string(options.integer("max_tries", 1)));
        if (options.has("scale")) push("-s", std::to_string(options.integer("scale", 1)));
        if (options.has("seed")) push("--random-seed", std::to_string(options.integer("seed", 0)));
        for (const auto& [name, value] : options.text_map("variables")) push("-D", name + "=" + value);
        if (options.boolean("per_statement", false)) arguments_.push_back("-r");
        if (options.boolean("connect_each", false)) arguments_.push_back("-C");
        if (!options.boolean("vacuum", false)) arguments_.push_back("-n");
    }

    std::string_view name() const override { return "pgbench"; }

    Result<ToolInvocation> invocation(ToolPhase phase, Nanoseconds duration) const override {
        const auto faults =
            check_tool_duration("pgbench", phase == ToolPhase::measure ? "measure" : "warm_up", duration);
        if (!faults.empty())
            return fail(ErrorKind::bad_input, "start", "pgbench", faults[0].message, faults[0].suggestion);
        ToolInvocation call;
        call.argv = {"pgbench", "-P", "1", "-T", std::to_string(std::chrono::duration_cast<seconds>(duration).count())};
        call.argv.insert(call.argv.end(), arguments_.begin(), arguments_.end());
        call.environment = environment_;
        call.files = files_;
        // It connects every client first and lets the transaction at hand end, which may wait for locks or a vacuum.
        call.at_most = duration + seconds(30) + std::chrono::milliseconds(20) * clients_;
        return call;
    }

    Result<Reading> parse(const ToolOutput& output) const override { return read_pgbench(output, rate_); }

    std::optional<LiveSample> parse_live_line(std::string_view line, bool from_stderr) const override {
        if (!from_stderr) return std::nullopt;
        const auto progress = parse_pgbench_progress(line);
        if (!progress || !progress->transactions_per_second) return std::nullopt;
        return LiveSample{"transactions_per_second", "1/s", *progress->transactions_per_second, {}};
    }

    std::vector<std::string> version_argv() const override { return {"pgbench", "--version"}; }
    Result<std::string> parse_version(std::string_view out, std::string_view err) const override {
        for (const auto line : text::lines(out)) // "pgbench (PostgreSQL) 15.20 (Debian ...)"
            if (const auto w = text::words(line); w.size() >= 3 && w[0] == "pgbench") return std::string(w[2]);
        return Tool::parse_version(out, err);
    }

  private:
    void push(std::string flag, std::string value) {
        arguments_.push_back(std::move(flag));
        arguments_.push_back(std::move(value));
    }

    std::optional<double> rate_;
    std::int64_t clients_ = 1;
    std::map<std::string, std::string> environment_;
    std::vector<std::string> arguments_;
    std::vector<ToolFile> files_;
};

} // namespace

std::unique_ptr<Tool> make_pgbench(const OptionValues& options) { return std::make_unique<Pgbench>(options); }

} // namespace perfrig
