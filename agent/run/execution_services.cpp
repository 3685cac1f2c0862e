// Services: started in order, each ready before the next, stopped in reverse; and how everything a run started ends.
#include "agent/run/execution.hpp"
#include "agent/run/readiness.hpp"
#include "common/base/units.hpp"
#include "common/net/url.hpp"

namespace perfrig {

namespace {
constexpr Milliseconds look_time{2'000};    // for one look at whether a service answers
constexpr Milliseconds time_to_answer{250}; // for who listens on this machine; far ones are asked for no longer
constexpr Milliseconds between_looks{100};
constexpr Milliseconds longest_between_commands{1'000}; // each costs a process: what is slow is asked less often
constexpr Milliseconds margin{60'000};
} // namespace

// Else another program (a forgotten nginx) would pass for the service: ready at once, and then measured.
RunStep<void> Execution::check_nobody_answers() {
    for (const ServiceSpec& service : run_.services) {
        std::string at = service.ready.target;
        if (service.ready.kind == Readiness::Kind::http) {
            const auto url = parse_url(at);
            if (!url) continue; // told where it is asked for
            at = (url->host.find(':') == std::string::npos ? url->host : "[" + url->host + "]") + ":" +
                 std::to_string(url->port);
        } else if (service.ready.kind != Readiness::Kind::tcp) {
            continue;
        }
        if (check_tcp(at, Deadline::in(time_to_answer)))
            return refused("service '" + service.name + "': another program answers at " + at +
                           " already, and would be measured in its place: end it (ss -ltnp shows it), or let the "
                           "service listen on a free port (ports: [NAME], then ${port.NAME})");
    }
    return {};
}

RunStep<void> Execution::start_service(const ServiceSpec& service) {
    StartOrder order;
    order.name = service.name;
    order.log_name = "services/" + service.name;
    order.role = service.role;
    order.phase = "start";
    order.must_live = true;
    order.argv = service.command.argv;
    order.environment = service.command.environment;
    order.directory = service.command.directory;
    order.cpus = roles_[service.role];
    order.memory_nodes = memory_of(service.role);
    order.speculation = service.speculation;
    std::shared_ptr<LogReadiness> log;
    if (service.ready.kind == Readiness::Kind::log) {
        auto pattern = LinePattern::compile(service.ready.target);
        if (!pattern) return refused("service '" + service.name + "': " + pattern.error().text());
        log = std::make_shared<LogReadiness>(std::move(*pattern));
        order.on_out = order.on_err = [log](std::string_view line) { log->line(line); };
    }
    PERFRIG_TRY(RunProcess * process, processes_->start(std::move(order)));
    services_.emplace_back(process, &service);
    return wait_until_ready(*process, service, [log] { return log && log->seen(); });
}

RunStep<void> Execution::wait_until_ready(RunProcess& process, const ServiceSpec& service,
                                          const std::function<bool()>& log_seen) {
    const Deadline deadline = Deadline::in(Milliseconds(service.ready.within_ms));
    Milliseconds before_next = between_looks;
    std::string last = "it printed no line that matches " + service.ready.target;
    const auto give_up = [&]() -> RunStep<void> {
        return failed("service '" + service.name + "' was not ready within " +
                      format_duration(Milliseconds(service.ready.within_ms)) + ": " + last + process.last_words());
    };
    while (true) {
        const Deadline look = Deadline::in(look_time).earlier_of(deadline);
        Result<void> answer;
        switch (service.ready.kind) {
        case Readiness::Kind::none: return processes_->pause(Milliseconds(0));
        case Readiness::Kind::log: {
            PERFRIG_TRY(const bool seen, processes_->wait(deadline, log_seen));
            return seen ? RunStep<void>() : give_up();
        }
        case Readiness::Kind::tcp: answer = check_tcp(service.ready.target, look); break;
        case Readiness::Kind::http: answer = check_http(service.ready.target, look); break;
        case Readiness::Kind::command: {
            StartOrder order;
            order.name = order.cgroup = "ready-" + service.name;
            order.role = service.role;
            order.phase = "start";
            order.sampled = false;
            order.argv = service.ready.argv;
            order.environment = service.command.environment;
            order.directory = service.command.directory;
            order.cpus = roles_[service.role];
            PERFRIG_TRY(RunProcess * probe, processes_->start(std::move(order)));
            PERFRIG_TRY(const bool ended, processes_->wait(deadline, [&] { return probe->exited.has_value(); }));
            if (!ended) last = "its readiness command hangs";
            if (!ended) return give_up();
            if (!probe->exited->status.good())
                answer = fail(ErrorKind::unavailable, "run", "its readiness command",
                              probe->exited->status.text() + probe->last_words());
            // Hundreds of looks may be needed: their logs must not stay open until the run's end.
            for (const auto& output : {probe->out, probe->err})
                if (const auto finished = output->finish(); !finished) return failed(finished.error());
            break;
        }
        }
        if (answer) return processes_->pause(Milliseconds(0)); // ready, if it still lives
        if (answer.error().kind == ErrorKind::bad_input)
            return refused("service '" + service.name + "': " + answer.error().text());
        last = answer.error().text();
        PERFRIG_CHECK(processes_->pause(std::min(before_next, deadline.left())));
        if (service.ready.kind == Readiness::Kind::command)
            before_next = std::min(before_next * 2, longest_between_commands);
        if (deadline.passed()) return give_up();
    }
}

void Execution::stop_services() {
    for (auto entry = services_.rbegin(); entry != services_.rend(); ++entry)
        processes_->stop(*entry->first, entry->second->stop_signal, Milliseconds(entry->second->stop_grace_ms));
}

void Execution::end_everything(RunStop* stop) {
    Milliseconds grace{0};
    for (const auto& entry : services_) grace += Milliseconds(entry.second->stop_grace_ms + 10'000);
    for (const auto& process : processes_->all()) processes_->expect_end(*process);
    enter("stopping", grace + margin);
    begin_phase("stop", std::nullopt);
    // Who is told to stop at once gets no grace: everything is killed.
    const bool at_once = stop->state == "cancelled" || stop->state == "interrupted";
    if (!at_once) stop_services();
    const auto ended = processes_->end_all();
    machine_.sampler.detach();
    if (!ended && stop->state == "completed") *stop = interrupted(ended.error().text());
    if (ended && !ended->clean)
        recorder_->finding("leftovers", "warning", "processes", "something the run started may be left: " + ended->why);
    if (ended && ended->killed > 0 && stop->state == "completed")
        recorder_->finding("leftovers", "info", "processes",
                           std::to_string(ended->killed) +
                               " processes were still there after all services had stopped, "
                               "and were killed");
    if (ended && ended->refused_processes > 0)
        recorder_->finding(
            "process_limit", "warning", "limits.processes",
            "the kernel refused the run a process or thread " + std::to_string(ended->refused_processes) +
                " times: it had limits.processes = " + std::to_string(machine_.profile.limits.processes) + " of them",
            Json{{"refused", ended->refused_processes}});
    end_phase();
    take_environment("after");
    pump_.reset(); // nothing writes to the pipes any more: drained and closed
    enter("uploading", margin);
    offer_artifacts();
    processes_.reset();
    const auto cleared = machine_.helper.end_run(assigned_.run, true, Deadline::in(margin)); // the directory goes
    if (!cleared || !cleared->clean) {
        leftovers_ = cleared ? cleared->why : cleared.error().text();
        recorder_->finding("leftovers", "warning", "processes",
                           "what the run left could not all be ended, so nothing more is measured here: " + leftovers_);
    }
    if (cleared && !cleared->traces.empty()) {
        std::string all;
        for (const std::string& trace : cleared->traces) all += (all.empty() ? "" : "; ") + trace;
        recorder_->finding("traces", "info", "files", "left outside of the run's directory: " + all,
                           Json{{"traces", cleared->traces}});
    }
}

void Execution::offer_artifacts() {
    std::uint64_t left = static_cast<std::uint64_t>(std::max<std::int64_t>(machine_.profile.limits.artifact_bytes, 0));
    for (const auto& process : processes_->all()) {
        for (const auto& [output, which] : {std::pair(process->out, ".stdout"), std::pair(process->err, ".stderr")}) {
            const auto finished = output->finish();
            if (!finished) recorder_->finding("artifacts", "warning", process->order.name, finished.error().text());
            if (output->total_bytes() == 0 || process->order.log_name.empty() || !finished) continue;
            const std::string name = process->order.log_name + which;
            if (output->dropped_bytes() > 0)
                recorder_->finding(
                    "log_bound", "info", process->order.name,
                    name + ": " + std::to_string(output->dropped_bytes()) + " of " +
                        std::to_string(output->total_bytes()) + " bytes were dropped (limits.log_bytes)",
                    Json{{"dropped_bytes", output->dropped_bytes()}, {"total_bytes", output->total_bytes()}});
            if (const std::uint64_t size = output->total_bytes() - output->dropped_bytes(); size > left) {
                recorder_->finding("artifact_bound", "warning", process->order.name,
                                   name + " is not kept: its " + std::to_string(size) +
                                       " bytes are more than is left of limits.artifact_bytes");
                continue;
            } else {
                left -= size;
            }
            const auto sha256 = sha256_of_file(output->path());
            auto stored = sha256 ? machine_.artifacts.take(assigned_.run, name, output->path())
                                 : Result<StoredArtifact>(sha256.error());
            if (stored)
                recorder_->event(protocol::ArtifactOffered{name, *sha256, static_cast<std::int64_t>(stored->size)});
            else
                recorder_->finding("artifacts", "warning", process->order.name, stored.error().text());
        }
    }
}

} // namespace perfrig
