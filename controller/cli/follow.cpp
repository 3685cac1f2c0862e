#include "controller/cli/follow.hpp"

#include "common/base/printable.hpp"
#include "controller/cli/show.hpp"
#include "controller/report/text.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>

namespace perfrig::cli {

namespace {

// The one thing a signal handler may touch.
volatile std::sig_atomic_t stop_signal = 0;
void on_stop(int signal) { stop_signal = signal; }

constexpr Milliseconds poll_every{500};
constexpr Milliseconds cancel_within{60'000};
constexpr Milliseconds patience_without_controller{120'000};

bool is_end(const std::string& state) { return state == "completed" || state == "failed" || state == "cancelled"; }
bool run_ended(const std::string& state) {
    return state == "completed" || state == "refused" || state == "failed" || state == "cancelled" ||
           state == "interrupted";
}

bool is_away(const Error& error) { return error.kind == ErrorKind::unavailable || error.kind == ErrorKind::timed_out; }

std::size_t terminal_columns() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

class Follower {
  public:
    Follower(const Client& client, std::int64_t submission, FollowOptions options)
        : client_(client), submission_(submission), target_("/api/v1/submissions/" + std::to_string(submission)),
          options_(options) {}

    Result<Json> follow();

  private:
    Result<Json> news(); // the submission, after a line for each run that has ended since the last look
    Result<void> print_rest(const Json& submission);
    void print_ended(const Json& run, const Json& submission);
    void print_waiting(const Json& submission);
    void print_bar(const Json& submission);
    void clear_bar();
    std::string live_rate(const Json& live) const;
    double elapsed_in_phase_ms(std::int64_t run, const std::string& phase);

    const Client& client_;
    std::int64_t submission_;
    std::string target_;
    FollowOptions options_;
    std::int64_t last_event_ = 0;
    std::set<std::int64_t> told_;
    std::set<std::pair<std::string, int>> ended_; // cell and replicate: a retry is no further one
    std::string waiting_told_;
    bool bar_shown_ = false;
    std::int64_t phase_run_ = 0; // the phase that the bar is about, and since when we have seen it
    std::string phase_name_;
    std::chrono::steady_clock::time_point phase_seen_;
};

void Follower::clear_bar() {
    if (bar_shown_) std::cout << "\r\x1b[2K";
    bar_shown_ = false;
}

void Follower::print_ended(const Json& run, const Json& submission) {
    const std::string state = run.value("state", "");
    if (!run_ended(state) || !told_.insert(run.value("id", std::int64_t{0})).second || options_.quiet) return;
    clear_bar();
    ended_.emplace(run.value("cell_key", ""), run.value("replicate", 1));
    std::cout << ended_.size() << "/" << submission.value("run_count", 0) << "  run " << run.value("id", 0) << "  "
              << run_name(run, submission) << "  ";
    const bool good = state == "completed" && run.value("verdict", "") != "void";
    if (options_.terminal) std::cout << (good ? "\x1b[32m" : "\x1b[31m");
    std::cout << (run.value("verdict", "") == "void" ? "void" : state) << (options_.terminal ? "\x1b[0m" : "");
    if (const std::string reason = run.value("reason", ""); !reason.empty()) std::cout << ": " << reason;
    std::cout << std::endl;
}

Result<Json> Follower::news() {
    while (true) {
        PERFRIG_TRY(Json page, client_.get(target_ + "/events?after=" + std::to_string(last_event_)));
        for (const Json& run : page.at("runs")) print_ended(run, page.at("submission"));
        last_event_ = page.at("last").get<std::int64_t>();
        if (!page.value("more", false)) return std::move(page.at("submission"));
    }
}

// What ended without an event of its own (cancelled before it began), or in one that came out of turn.
Result<void> Follower::print_rest(const Json& submission) {
    if (options_.quiet) return {};
    PERFRIG_TRY(const Json runs, all_runs(client_, submission_));
    for (const Json& run : runs) print_ended(run, submission);
    return {};
}

// Where there is no bar: a line whenever what it waits for is another thing than before. When it is about to start,
// there is nothing to say.
void Follower::print_waiting(const Json& submission) {
    if (options_.terminal || options_.quiet) return;
    std::string about;
    const Json waiting = submission.value("waiting", Json());
    if (waiting.is_object()) {
        bool soon = false;
        for (const Json& machine : waiting.value("machines", Json::array())) {
            soon = soon || machine.value("why", "") == "free";
            about += machine.value("machine", "") + " " + machine.value("why", "") + ";";
        }
        about = soon ? "" : about + std::to_string(waiting.value("blocks_ahead", 0));
    }
    if (!about.empty() && about != waiting_told_) std::cout << "waits: " << waiting_text(submission) << std::endl;
    waiting_told_ = about;
}

std::string Follower::live_rate(const Json& live) const {
    for (const Json& sample : live.value("samples", Json::array())) {
        const std::string name = sample.value("name", "");
        if (sample.value("kind", "") == "gauge" && name.ends_with("_per_second") &&
            sample.value("value", Json()).is_number())
            return "  " + report::readable_number(sample["value"].get<double>()) + "/s";
    }
    return "";
}

// By our own clock, since the machine's may differ: up to one look too little.
double Follower::elapsed_in_phase_ms(std::int64_t run, const std::string& phase) {
    const auto now = std::chrono::steady_clock::now();
    if (run != phase_run_ || phase != phase_name_) phase_run_ = run, phase_name_ = phase, phase_seen_ = now;
    return std::chrono::duration<double, std::milli>(now - phase_seen_).count();
}

void Follower::print_bar(const Json& submission) {
    if (!options_.terminal || options_.quiet) return;
    std::int64_t ended = 0;
    const Json counts = submission.value("run_counts", Json::object()); // items() doesn't keep it alive
    for (const auto& [state, count] : counts.items())
        if (run_ended(state)) ended += count.get<std::int64_t>();
    std::string line = "[" + std::to_string(ended) + "/" + std::to_string(submission.value("run_count", 0)) + "] ";
    const Json& current = submission.value("current_runs", Json::array());
    if (current.empty() || !waiting_text(submission).empty()) {
        line += submission.value("state", "");
        if (const std::string why = waiting_text(submission); !why.empty()) line += ", waits: " + why;
        line = beginning_of(line, terminal_columns() - 1); // a second line could not be taken back
    } else {
        const Json& run = current[0];
        line += run_name(run, submission) + "  " + run.value("state", "");
        const auto live =
            client_.get("/api/v1/runs/" + std::to_string(run.value("id", 0)) + "/live", Milliseconds(3'000));
        if (live && live->value("phase", Json()).is_object()) {
            const Json& phase = (*live)["phase"];
            const double elapsed_ms = elapsed_in_phase_ms(run.value("id", std::int64_t{0}), phase.value("name", ""));
            if (phase.value("planned_ms", Json()).is_number() && phase["planned_ms"].get<double>() > 0) {
                const double planned_ms = phase["planned_ms"].get<double>();
                char seconds[48];
                std::snprintf(seconds, sizeof seconds, " %.0f/%.0f s", std::min(elapsed_ms, planned_ms) / 1e3,
                              planned_ms / 1e3);
                line +=
                    " " + phase.value("name", "") + " " + report::progress_bar(elapsed_ms / planned_ms, 24) + seconds;
            } else {
                line += " " + phase.value("name", "");
            }
            line += live_rate(*live);
        }
    }
    std::cout << "\r\x1b[2K" << line << std::flush;
    bar_shown_ = true;
}

Result<Json> Follower::follow() {
    Deadline controller_back = Deadline::in(patience_without_controller);
    std::optional<Deadline> cancelled_by;
    bool cancelled = false;
    for (;; std::this_thread::sleep_for(poll_every)) {
        if (stop_signal && !cancelled) {
            if (!cancelled_by) {
                clear_bar();
                std::cerr << "cancelling the submission" << std::endl;
                cancelled_by = Deadline::in(cancel_within);
            }
            const auto told = client_.post(target_ + "/cancel", Json::object());
            cancelled = told.has_value();
            // Nobody else cancels it: a controller that restarts just now is asked again.
            if (!told && (!is_away(told.error()) || cancelled_by->passed())) return std::move(told).error();
        }
        auto submission = news();
        if (!submission) {
            // A controller that restarts disturbs nothing that it follows.
            if (!is_away(submission.error()) || controller_back.passed()) return std::move(submission).error();
            continue;
        }
        controller_back = Deadline::in(patience_without_controller);
        const std::string state = submission->value("state", "");
        if (is_end(state) && submission->value("current_runs", Json::array()).empty()) {
            if (const auto printed = print_rest(*submission); !printed) {
                if (!is_away(printed.error())) return std::move(printed).error();
                continue;
            }
            clear_bar();
            return submission;
        }
        if (cancelled_by && cancelled_by->passed()) {
            clear_bar();
            return fail(ErrorKind::timed_out, "cancel", target_, "runs are still under way after 60 s",
                        "see perfrig status");
        }
        print_waiting(*submission);
        print_bar(*submission);
    }
}

} // namespace

void remember_stop_signals() {
    struct sigaction action {};
    action.sa_handler = on_stop;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

Result<Json> follow(const Client& client, std::int64_t submission, const FollowOptions& options) {
    return Follower(client, submission, options).follow();
}

} // namespace perfrig::cli
