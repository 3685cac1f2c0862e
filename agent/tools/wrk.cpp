#include "agent/tools/wrk.hpp"

#include "agent/tools/option_values.hpp"
#include "agent/tools/reading.hpp"
#include "agent/tools/text.hpp"

namespace perfrig {

namespace {

using std::chrono::seconds;

struct WrkOptions {
    std::string url;
    std::int64_t threads = 1;
    std::int64_t connections = 1;
    std::int64_t timeout_seconds = 2;
    std::vector<std::string> headers;
    std::optional<std::string> script; // Lua
    std::optional<std::string> script_file;
};

class Wrk final : public Tool {
  public:
    explicit Wrk(WrkOptions options) : options_(std::move(options)) {}

    std::string_view name() const override { return "wrk"; }

    Result<ToolInvocation> invocation(ToolPhase phase, Nanoseconds duration) const override {
        const auto faults = check_tool_duration("wrk", phase == ToolPhase::measure ? "measure" : "warm_up", duration);
        if (!faults.empty()) return fail(ErrorKind::bad_input, "start", "wrk", faults[0].message, faults[0].suggestion);
        ToolInvocation call;
        const auto whole = std::chrono::duration_cast<seconds>(duration);
        call.argv = {"wrk",
                     "--latency",
                     "-t" + std::to_string(options_.threads),
                     "-c" + std::to_string(options_.connections),
                     "-d" + std::to_string(whole.count()) + "s",
                     "--timeout",
                     std::to_string(options_.timeout_seconds) + "s"};
        for (const auto& header : options_.headers) call.argv.insert(call.argv.end(), {"-H", header});
        if (options_.script) {
            call.files.push_back({"wrk.lua", *options_.script});
            call.argv.insert(call.argv.end(), {"-s", "wrk.lua"});
        } else if (options_.script_file) {
            call.argv.insert(call.argv.end(), {"-s", *options_.script_file});
        }
        call.argv.push_back(options_.url);
        call.environment = forced_tool_environment();
        // It opens all connections first and sees the end only between events; a script's done() may take a while.
        call.at_most =
            duration + seconds(15 + options_.timeout_seconds) + std::chrono::milliseconds(options_.connections);
        return call;
    }

    Result<Reading> parse(const ToolOutput& output) const override {
        return read_wrk(output, {.script_may_print = options_.script || options_.script_file});
    }

    std::vector<std::string> version_argv() const override { return {"wrk", "-v"}; }
    Result<std::string> parse_version(std::string_view out, std::string_view err) const override {
        for (const auto all : {out, err})
            for (const auto line : text::lines(all))
                if (const auto w = text::words(line); w.size() >= 2 && w[0] == "wrk") return std::string(w[1]);
        return Tool::parse_version(out, err);
    }

  private:
    WrkOptions options_;
};

} // namespace

std::unique_ptr<Tool> make_wrk(const OptionValues& options) {
    WrkOptions typed;
    typed.url = options.text("url").value_or("");
    typed.threads = options.integer("threads", 1);
    typed.connections = options.integer("connections", 1);
    typed.headers = options.texts("headers");
    typed.script = options.text("script");
    typed.script_file = options.text("script_file");
    if (const auto timeout = options.duration("timeout"))
        typed.timeout_seconds = std::chrono::duration_cast<seconds>(*timeout).count();
    return std::make_unique<Wrk>(std::move(typed));
}

} // namespace perfrig
