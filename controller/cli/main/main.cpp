// perfrig: the command line. Arguments in, calls out; what the commands do stands in controller/cli.
#include "common/base/file_tree.hpp"
#include "common/base/printable.hpp"
#include "controller/cli/arguments.hpp"
#include "controller/cli/exit_codes.hpp"
#include "controller/cli/follow.hpp"
#include "controller/cli/laptop.hpp"
#include "controller/cli/show.hpp"
#include "controller/cli/submit.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <unistd.h>

using namespace perfrig;
using namespace perfrig::cli;

namespace {

constexpr const char* version = "0.1.0";

struct Options {
    std::string url, token_file, folder = default_folder();
    LaptopOptions laptop;
    bool forget = false;
    SubmitOptions submission;
    bool json = false, quiet = false;
    std::int64_t id = 0;
    std::string experiment, junit, id_file, machine, reason;
    Format format = Format::table;
};

bool on_terminal() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

int told(const Error& error) {
    std::cerr << "perfrig: " << printable(error.text()) << std::endl;
    return exit_code_of(error);
}

int said(const Result<std::string>& text) {
    if (!text) return told(text.error());
    std::cout << *text << (text->ends_with('\n') ? "" : "\n");
    return exit_good;
}

Result<Client> connect(const Options& o) {
    PERFRIG_TRY(Connection connection, find_connection(o.url, o.token_file, o.folder));
    return Client(std::move(connection), ::isatty(STDOUT_FILENO) == 1);
}

// The same for every command that asks a controller.
template <class Ask> int with_client(const Options& o, Ask ask) {
    const auto client = connect(o);
    return client ? ask(*client) : told(client.error());
}

int exit_of(const Json& submission) {
    if (submission.value("state", "") != "completed") {
        // Interrupted to the last attempt, and nothing failed by itself: that says nothing of what was measured.
        const Json counts = submission.value("run_counts", Json::object());
        const bool lost = counts.value("interrupted", 0) > 0 && counts.value("failed", 0) == 0;
        return lost && submission.value("state", "") == "failed" ? exit_infrastructure : exit_run_failed;
    }
    const Json verdicts = submission.value("verdict_counts", Json::object());
    return verdicts.value("void", 0) > 0 ? exit_run_failed : exit_good;
}

Result<void> write_junit(const Client& client, const Options& o, std::int64_t id) {
    if (o.junit.empty()) return {};
    PERFRIG_TRY(const std::string text, junit_text(client, id));
    return write_file_atomically(o.junit, text);
}

// A JUnit file that can't be written costs nobody the table, and a table nobody the file.
int show_end(const Client& client, const Options& o, std::int64_t id, const Json& submission) {
    const auto written = write_junit(client, o, id);
    const int shown = said(results_text(client, id, o.format, on_terminal()));
    if (!written) return told(written.error());
    return shown != exit_good ? shown : exit_of(submission);
}

// For scripts that ask for its results later: "the newest submission" may be somebody else's.
Result<void> keep_id(const Options& o, std::int64_t id) {
    return o.id_file.empty() ? Result<void>() : write_file_atomically(o.id_file, std::to_string(id) + "\n");
}

int run(const Options& o) {
    // The file is checked here first: its faults need no controller.
    if (std::string(o.submission.file) != "-")
        if (const auto text = read_file(o.submission.file); !text) {
            told(text.error());
            return exit_bad_input;
        }
    return with_client(o, [&](const Client& client) {
        remember_stop_signals();
        const auto queued = submit(client, o.submission);
        if (!queued) return told(queued.error());
        const std::int64_t id = queued->value("id", std::int64_t{0});
        if (const auto kept = keep_id(o, id); !kept) return told(kept.error());
        if (!o.quiet) {
            const int runs = queued->value("run_count", 0);
            const std::string expected = expectation_text(*queued, SystemClock().utc_ns());
            std::cout << "submission " << id << " of " << queued->value("experiment", "") << ", " << runs
                      << (runs == 1 ? " run" : " runs") << (expected.empty() ? "" : ", ") << expected << std::endl;
        }
        const auto ended = follow(client, id, {on_terminal(), o.quiet});
        return ended ? show_end(client, o, id, *ended) : told(ended.error());
    });
}

int submit_only(const Options& o) {
    return with_client(o, [&](const Client& client) {
        const auto queued = submit(client, o.submission);
        if (!queued) return told(queued.error());
        if (const auto kept = keep_id(o, queued->value("id", std::int64_t{0})); !kept) return told(kept.error());
        if (o.json)
            std::cout << queued->dump(2) << "\n";
        else
            std::cout << queued->value("id", 0) << "\n";
        return exit_good;
    });
}

int wait_for(const Options& o) {
    return with_client(o, [&](const Client& client) {
        remember_stop_signals();
        const auto ended = follow(client, o.id, {on_terminal(), o.quiet});
        return ended ? show_end(client, o, o.id, *ended) : told(ended.error());
    });
}

int cancel(const Options& o) {
    return with_client(o, [&](const Client& client) {
        const auto done = client.post("/api/v1/submissions/" + std::to_string(o.id) + "/cancel", Json::object());
        if (!done) return told(done.error());
        std::cout << "submission " << o.id << ": " << done->value("state", "") << "\n";
        return exit_good;
    });
}

int results(const Options& o) {
    return with_client(o, [&](const Client& client) {
        std::int64_t id = o.id;
        if (id == 0) {
            const auto latest = latest_submission(client, o.experiment);
            if (!latest) return told(latest.error());
            id = *latest;
        }
        return said(results_text(client, id, o.format, on_terminal()));
    });
}

int machine_action(const Options& o, const char* action) {
    return with_client(o, [&](const Client& client) {
        const auto done = client.post("/api/v1/machines/" + percent_encode(o.machine) + "/" + action,
                                      std::string_view(action) == "hold" ? Json{{"reason", o.reason}} : Json::object());
        if (!done) return told(done.error());
        std::cout << o.machine << ": " << done->value("state", "") << "\n";
        return exit_good;
    });
}

int forget_machine(const Options& o) {
    return with_client(o, [&](const Client& client) {
        const auto done = client.remove("/api/v1/machines/" + percent_encode(o.machine));
        if (!done) return told(done.error());
        std::cout << o.machine << ": forgotten\n";
        return exit_good;
    });
}

void add_file(CLI::App& command, Options& o) {
    command.add_option("file", o.submission.file, "the experiment file; - reads standard input")->required();
    command
        .add_option("--set", o.submission.overrides,
                    "PATH=VALUE in the place of what the file says, e.g. phases.measure=4s")
        ->allow_extra_args(false);
}

void add_submission(CLI::App& command, Options& o) {
    add_file(command, o);
    add_priority(command, o.submission.priority);
    command.add_flag("--yes", o.submission.yes, "also where it has 10,000 cells or more");
    command.add_option("--source", o.submission.source, "who or what queues it, as the queue shows it");
    command.add_option("--id-file", o.id_file, "also write the submission's id to this file, as soon as it is queued");
    command.add_option("--idempotency-key", o.submission.idempotency_key,
                       "the same key and file again give the same submission");
}

int run_command_line(int argc, char** argv) {
    Options o;
    int exit = exit_good;
    CLI::App app{
        "perfrig: benchmarks whose numbers can be defended.\n\n"
        "  perfrig up                             a database, a controller and an agent on this machine\n"
        "  perfrig run FILE                       queue an experiment, follow it, print its table\n"
        "  perfrig run FILE --set phases.measure=4s --junit results.xml\n"
        "  perfrig results --format csv           the newest submission's table\n"
        "  perfrig down                           ends everything that up started\n\n"
        "Exit codes: 0 good (single runs may have been refused), 1 a run failed or was voided, all were refused,\n"
        "or the submission was cancelled, 2 bad input, 3 infrastructure (try again)."};
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("perfrig ") + version);
    app.add_option("--url", o.url, "the controller (else PERFRIG_URL, else what `perfrig up` left)");
    app.add_option("--token-file", o.token_file,
                   "your token (else PERFRIG_TOKEN, PERFRIG_TOKEN_FILE, else what `perfrig up` left)");
    app.add_option("--dir", o.folder, "the folder of `perfrig up`")->capture_default_str();
    app.fallthrough();

    const auto command = [&](const char* name, const char* help, auto action) {
        CLI::App* sub = app.add_subcommand(name, help);
        sub->callback([&exit, action, &o] { exit = action(o); });
        return sub;
    };

    std::error_code error;
    o.laptop.programs = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
    CLI::App* up_command =
        command("up", "Start a private PostgreSQL, a controller and an agent on this machine.", [](Options& opt) {
            opt.laptop.folder = opt.folder;
            return said(up(opt.laptop));
        });
    up_command->add_option("--listen", o.laptop.listen, "the controller's address")->capture_default_str();
    up_command->add_option("--metrics-listen", o.laptop.metrics_listen, "the agent's address for Prometheus")
        ->capture_default_str();
    up_command->add_option("--machine", o.laptop.machine, "this machine's name")->capture_default_str();
    up_command->add_option("--user", o.laptop.user, "where root calls: who runs database, controller and agent")
        ->capture_default_str();
    up_command->add_option("--workload-user", o.laptop.workload_user, "where root calls: who runs services and load")
        ->capture_default_str();
    command("down", "End what up started; the data stays.", [](Options& opt) {
        return said(down(opt.folder, opt.forget));
    })->add_flag("--forget", o.forget, "also remove the folder with all results");

    CLI::App* validate_command =
        command("validate", "Check an experiment file: every fault with its place. Needs no controller.",
                [](Options& opt) { return validate(opt.submission, opt.json); });
    add_file(*validate_command, o);
    validate_command->add_flag("--json", o.json, "for programs");
    CLI::App* plan_command = command("plan", "Show cells, order, blocks and expected time. Needs no controller.",
                                     [](Options& opt) { return plan(opt.submission, opt.json); });
    add_file(*plan_command, o);
    plan_command->add_flag("--json", o.json, "for programs");

    CLI::App* run_sub =
        command("run", "Queue an experiment, follow it, print its table.", [](Options& opt) { return run(opt); });
    add_submission(*run_sub, o);
    add_format(*run_sub, o.format);
    run_sub->add_option("--junit", o.junit, "also write a JUnit file, a test case for each run");
    run_sub->add_flag("--quiet", o.quiet, "the table alone");
    CLI::App* submit_sub = command("submit", "Queue an experiment and print its submission's id.",
                                   [](Options& opt) { return submit_only(opt); });
    add_submission(*submit_sub, o);
    submit_sub->add_flag("--json", o.json, "the whole document");
    CLI::App* wait_sub = command("wait", "Follow a submission to its end and print its table.",
                                 [](Options& opt) { return wait_for(opt); });
    add_submission_id(*wait_sub, o.id, "its number")->required();
    wait_sub->add_option("--junit", o.junit, "also write a JUnit file, a test case for each run");
    wait_sub->add_flag("--quiet", o.quiet, "the table alone");
    add_format(*wait_sub, o.format);

    CLI::App* status_sub = command("status", "The queue, or one submission.", [](Options& opt) {
        return with_client(opt, [&](const Client& client) { return said(status_text(client, opt.id)); });
    });
    add_submission_id(*status_sub, o.id, "its number; without: the newest 30");
    CLI::App* cancel_sub = command("cancel", "Cancel a submission: nothing of it starts any more, what runs is ended.",
                                   [](Options& opt) { return cancel(opt); });
    add_submission_id(*cancel_sub, o.id, "its number")->required();
    CLI::App* results_sub = command("results", "The table of a submission; without a number: of the newest.",
                                    [](Options& opt) { return results(opt); });
    add_submission_id(*results_sub, o.id, "its number");
    results_sub->add_option("--experiment", o.experiment, "the newest submission of this experiment");
    add_format(*results_sub, o.format);

    CLI::App* machines = app.add_subcommand("machines", "Machines: list, show, hold, release, forget.");
    machines->require_subcommand(1);
    const auto machine_command = [&](const char* name, const char* help, auto action) {
        CLI::App* sub = machines->add_subcommand(name, help);
        sub->callback([&exit, action, &o] { exit = action(o); });
        return sub;
    };
    machine_command("list", "Every machine and its state.", [](Options& opt) {
        return with_client(opt, [&](const Client& client) { return said(machines_text(client, "", opt.json)); });
    })->add_flag("--json", o.json, "for programs");
    machine_command("show", "One machine with its profile and environment.",
                    [](Options& opt) {
                        return with_client(
                            opt, [&](const Client& client) { return said(machines_text(client, opt.machine, true)); });
                    })
        ->add_option("name", o.machine)
        ->required();
    CLI::App* hold = machine_command("hold", "Keep it from taking new work.",
                                     [](Options& opt) { return machine_action(opt, "hold"); });
    hold->add_option("name", o.machine)->required();
    hold->add_option("--reason", o.reason, "shown to everybody who asks why")->required();
    machine_command("release", "Give it back to the queue.",
                    [](Options& opt) { return machine_action(opt, "release"); })
        ->add_option("name", o.machine)
        ->required();
    machine_command("forget", "Forget one that is gone; what it measured stays.",
                    [](Options& opt) { return forget_machine(opt); })
        ->add_option("name", o.machine)
        ->required();

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e) == 0 ? exit_good : exit_bad_input; // --help, --version
        std::cerr << printable(refusal_of_arguments(app, e)) << std::endl;
        return exit_bad_input;
    }
    return exit;
}

} // namespace

int main(int argc, char** argv) {
    try {
        const int exit = run_command_line(argc, argv);
        // A table that a full disk cut short must not pass for a whole one.
        if (std::cout.flush()) return exit;
        std::cerr << "perfrig: what it printed could not be written whole to standard output" << std::endl;
        return exit_infrastructure;
    } catch (const std::exception& e) {
        std::cerr << "perfrig: a bug: " << e.what() << std::endl;
        return exit_infrastructure;
    }
}
