#include "common/experiment/tool_options.hpp"

#include <array>

namespace perfrig {

namespace {

using enum OptionType;
constexpr double day = 86'400;

// What several tables hold.
constexpr OptionSpec threads(std::string_view help) {
    return {.name = "threads",
            .type = integer,
            .help = help,
            .unit = "count",
            .minimum = 1,
            .maximum = 1024,
            .fallback = "1"};
}
constexpr std::array<std::string_view, 2> streams{"stdout", "stderr"};
constexpr OptionSpec from_stream{
    .name = "from", .type = text, .help = "where to look", .fallback = "stdout", .choices = streams};
constexpr OptionSpec to_the_unit{.name = "scale",
                                 .type = number,
                                 .help = "factor that takes the printed number to the unit",
                                 .minimum = -1e18,
                                 .maximum = 1e18,
                                 .fallback = "1"};

constexpr std::array wrk_options{
    OptionSpec{.name = "url", .type = text, .help = "what to ask for: http://HOST:PORT/PATH", .required = true},
    OptionSpec{.name = "connections",
               .type = integer,
               .help = "connections kept open, over all threads; threads must divide them",
               .required = true,
               .unit = "count",
               .minimum = 1,
               .maximum = 1'000'000},
    threads("threads of wrk"),
    OptionSpec{.name = "timeout",
               .type = duration,
               .help = "a request without an answer for so long counts as a timeout; whole seconds",
               .unit = "s",
               .minimum = 1,
               .maximum = day,
               .fallback = "2s"},
    OptionSpec{.name = "headers", .type = text_list, .help = "request headers, each \"Name: value\""},
    OptionSpec{.name = "script", .type = text, .help = "Lua for wrk, as text"},
    OptionSpec{.name = "script_file", .type = text, .help = "Lua for wrk, as a path relative to the run's directory"},
};

constexpr std::array<std::string_view, 3> pgbench_protocols{"simple", "extended", "prepared"};
constexpr std::array<std::string_view, 3> pgbench_builtins{"tpcb-like", "simple-update", "select-only"};
constexpr std::array pgbench_options{
    OptionSpec{
        .name = "uri", .type = text, .help = "connection string or URI; instead of database, host, port and user"},
    OptionSpec{.name = "database", .type = text, .help = "database to connect to"},
    OptionSpec{.name = "host", .type = text, .help = "host name, address, or directory of the socket"},
    OptionSpec{.name = "port", .type = integer, .help = "port of the server", .minimum = 1, .maximum = 65'535},
    OptionSpec{.name = "user", .type = text, .help = "user to connect as"},
    OptionSpec{.name = "clients",
               .type = integer,
               .help = "sessions at once",
               .unit = "count",
               .minimum = 1,
               .maximum = 100'000,
               .fallback = "1"},
    threads("threads of pgbench; at most as many as clients"),
    OptionSpec{.name = "protocol",
               .type = text,
               .help = "how queries are sent",
               .fallback = "simple",
               .choices = pgbench_protocols},
    OptionSpec{.name = "scripts",
               .type = text_list,
               .help = "transaction scripts as text; one is picked at random for each transaction"},
    OptionSpec{.name = "script_files",
               .type = text_list,
               .help = "transaction scripts as paths relative to the run's directory, each with an optional @WEIGHT"},
    OptionSpec{.name = "builtin",
               .type = text,
               .help = "a script of pgbench's own",
               .fallback = "tpcb-like",
               .choices = pgbench_builtins},
    OptionSpec{.name = "select_only", .type = boolean, .help = "short for builtin: select-only", .fallback = "false"},
    OptionSpec{.name = "rate",
               .type = number,
               .help = "transactions wanted per second, over all clients (open loop)",
               .unit = "1/s",
               .minimum = 0.001,
               .maximum = 1e9},
    OptionSpec{.name = "latency_limit",
               .type = duration,
               .help = "slower transactions are counted; with a rate, late ones are skipped",
               .unit = "s",
               .minimum = 0.001,
               .maximum = day},
    OptionSpec{.name = "max_tries",
               .type = integer,
               .help = "tries of a transaction after serialization failures and deadlocks",
               .unit = "count",
               .minimum = 1,
               .maximum = 1'000'000,
               .fallback = "1"},
    OptionSpec{.name = "scale",
               .type = integer,
               .help = "the scale factor of the tables, for scripts of your own",
               .unit = "count",
               .minimum = 1,
               .maximum = 1'000'000},
    OptionSpec{.name = "variables", .type = text_map, .help = "variables of the scripts: name to value"},
    OptionSpec{.name = "per_statement",
               .type = boolean,
               .help = "report the latency of each statement; costs a little",
               .fallback = "false"},
    OptionSpec{
        .name = "connect_each", .type = boolean, .help = "a new connection for each transaction", .fallback = "false"},
    OptionSpec{.name = "vacuum",
               .type = boolean,
               .help = "vacuum pgbench's own tables before each phase",
               .fallback = "false"},
    OptionSpec{.name = "seed",
               .type = integer,
               .help = "of pgbench's random numbers",
               .minimum = 0,
               .maximum = 4'294'967'295.0},
};

constexpr std::array perf_sched_pipe_options{
    OptionSpec{.name = "loops",
               .type = integer,
               .help = "messages sent there and back; a warm-up takes a tenth",
               .unit = "count",
               .minimum = 1,
               .maximum = 1'000'000'000,
               .fallback = "1000000"},
    OptionSpec{.name = "threads",
               .type = boolean,
               .help = "between two threads instead of two processes",
               .fallback = "false"},
};

constexpr std::array<std::string_view, 3> takes{"only", "first", "last"};
constexpr std::array metric_members{
    OptionSpec{.name = "name", .type = text, .help = "of the metric: lower case, digits and _", .required = true},
    OptionSpec{.name = "unit",
               .type = text,
               .help = "of the value after scaling: s, 1/s, B, ratio, count ...",
               .required = true},
    OptionSpec{.name = "pattern", .type = text, .help = "regular expression with one group, searched line by line"},
    OptionSpec{.name = "pointer", .type = text, .help = "JSON pointer into the output, such as /latency/p99"},
    from_stream,
    OptionSpec{.name = "take",
               .type = text,
               .help = "which of several matches; only: more than one is an error",
               .fallback = "only",
               .choices = takes},
    to_the_unit,
    OptionSpec{.name = "labels", .type = text_map, .help = "labels of the metric"},
};
constexpr std::array series_members{
    OptionSpec{.name = "name", .type = text, .help = "of the series: lower case, digits and _", .required = true},
    OptionSpec{.name = "unit", .type = text, .help = "of the value after scaling", .required = true},
    OptionSpec{.name = "pattern",
               .type = text,
               .help = "regular expression with one group, held against each line as it comes",
               .required = true},
    from_stream,
    to_the_unit,
    OptionSpec{.name = "labels", .type = text_map, .help = "labels of the series"},
};
constexpr std::array command_options{
    OptionSpec{.name = "command",
               .type = command,
               .help = "the program: a list of arguments, or a string for /bin/sh -c; its environment holds "
                       "PERFRIG_PHASE and PERFRIG_DURATION_SECONDS",
               .required = true},
    OptionSpec{.name = "metrics",
               .type = objects,
               .help = "what to read from its output",
               .required = true,
               .members = metric_members},
    OptionSpec{.name = "series",
               .type = objects,
               .help = "what to read from its lines while it runs",
               .members = series_members},
    OptionSpec{.name = "at_most",
               .type = duration,
               .help = "how long it may take; else the phase and a minute more",
               .unit = "s",
               .minimum = 0.001,
               .maximum = day},
    OptionSpec{.name = "ends_by_itself",
               .type = boolean,
               .help = "Whether the program ends by itself, so that phases.measure may be left out",
               .fallback = "false"},
};

constexpr std::array tools{
    ToolDescription{"wrk", "HTTP load, closed loop", wrk_options},
    ToolDescription{"pgbench", "PostgreSQL load", pgbench_options},
    ToolDescription{"perf-sched-pipe", "cost of a context switch: perf bench sched pipe", perf_sched_pipe_options},
    ToolDescription{"command", "any program that prints numbers", command_options},
};

} // namespace

std::span<const ToolDescription> tool_descriptions() { return tools; }

const ToolDescription* find_tool_description(std::string_view tool) {
    for (const auto& description : tools)
        if (description.name == tool) return &description;
    return nullptr;
}

} // namespace perfrig
