#include "controller/queue/pass.hpp"

#include "controller/db/artifacts.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/queue.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/submissions.hpp"
#include "controller/queue/block_decision.hpp"
#include "controller/queue/resolve_block.hpp"
#include "controller/queue/run_state.hpp"

#include <algorithm>

namespace perfrig::queue {

namespace {

using Steady = std::chrono::steady_clock;

// An agent answers prepare_block at once, but one that reads slowly may have a long one still before it.
constexpr Milliseconds answer_patience{20'000};

Milliseconds since(Steady::time_point then) { return std::chrono::duration_cast<Milliseconds>(Steady::now() - then); }

Milliseconds since_utc_ns(std::int64_t then_ns) {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::nanoseconds(SystemClock().utc_ns() - then_ns));
}

class Pass {
  public:
    Pass(db::Pool& pool, PassInput input, const LeaseTimes& times)
        : pool_(pool), input_(std::move(input)), times_(times) {
        out_.said = std::move(input_.said);
    }

    PassOutput look() {
        if (input_.look_for_silence) note(mark_silence());
        for (const auto& agent : input_.agents) {
            if (database_is_gone()) break;
            const SaidToAgent before = out_.said[agent.machine];
            const auto looked = look_at(agent);
            if (!looked) out_.said[agent.machine] = before; // nothing of it was committed, nothing is said
            note(looked);
        }
        if (input_.finish_submissions && !database_is_gone()) note(retry_what_nobody_has());
        if (input_.finish_submissions && !database_is_gone()) note(finish_submissions());
        return std::move(out_);
    }

  private:
    // One agent's trouble must neither keep the others waiting nor lose what was committed for them.
    void note(const Result<void>& done) {
        if (!done && !out_.error) out_.error = done.error();
    }
    bool database_is_gone() const { return out_.error && out_.error->kind == ErrorKind::unavailable; }

    void say(const ConnectedAgent& agent, protocol::FromController message) {
        out_.messages.push_back({agent.machine, agent.session, std::move(message)});
    }
    void tell(std::string line) {
        out_.log.push_back(std::move(line));
        out_.changed = true;
    }

    Result<void> mark_silence() {
        return pool_.run_in_transaction([this](db::Connection& c) -> Result<void> {
            PERFRIG_TRY(const auto silent, db::queue::mark_silent(c));
            for (const auto& lease : silent) {
                ++out_.silenced;
                tell("the lease of block " + std::to_string(lease.block_id) +
                     " is silent: its agent sent no heartbeat");
            }
            PERFRIG_TRY(const auto unseen, db::machines::unseen_for(c, times_.lease));
            for (const auto& machine : unseen) {
                if (machine.state == model::MachineState::enrolling) continue;
                const model::MachineState from[] = {machine.state};
                PERFRIG_TRY(const bool done,
                            db::machines::change_state(c, machine.id, from, model::MachineState::unreachable,
                                                       "its agent sends no heartbeats", "controller"));
                if (done) tell("machine " + machine.name + " is unreachable");
            }
            return {};
        });
    }

    Result<void> look_at(const ConnectedAgent& agent) {
        PERFRIG_TRY(const auto lease,
                    pool_.run([&](db::Connection& c) { return db::queue::lease_of(c, agent.machine); }));
        if (!lease) return grant(agent);
        auto& said = out_.said[agent.machine];
        if (said.session != agent.session || said.token != lease->token) {
            said = {};
            said.session = agent.session;
            said.token = lease->token;
            said.prepared = Steady::now();
        }
        return look_at_block(agent, *lease, said);
    }

    Result<void> grant(const ConnectedAgent& agent) {
        std::optional<std::int64_t> token;
        std::vector<protocol::FromController> messages;
        std::string line;
        const auto work = [&](db::Connection& c) -> Result<void> {
            token.reset();
            messages.clear();
            PERFRIG_TRY(auto granted, db::queue::grant_next(c, agent.machine, times_.lease, times_.start_within));
            if (!granted) return {};
            PERFRIG_TRY(const auto machine, db::machines::find_by_id(c, agent.machine));
            PERFRIG_TRY(messages, prepare_block(c, machine, granted->lease, granted->runs));
            token = granted->lease.token;
            line = "block " + std::to_string(granted->block.id) + " of submission " +
                   std::to_string(granted->block.submission_id) + " goes to " + machine.name + ", token " +
                   std::to_string(*token) + (messages.empty() ? ": no run of it can be made there" : "");
            return {};
        };
        PERFRIG_CHECK(pool_.run_in_transaction(work));
        if (!token) return {};
        ++out_.granted;
        tell(std::move(line));
        auto& said = out_.said[agent.machine];
        said = {};
        said.session = agent.session;
        said.token = *token;
        said.prepared = Steady::now();
        for (auto& message : messages) {
            if (const auto* prepare = std::get_if<protocol::PrepareBlock>(&message))
                for (const auto& run : prepare->runs) said.runs.insert(run.run);
            say(agent, std::move(message));
        }
        return {};
    }

    Result<void> look_at_block(const ConnectedAgent& agent, const model::Lease& lease, SaidToAgent& said) {
        bool assigned = false, prepared_again = false;
        std::optional<BlockStep> step;
        std::vector<protocol::FromController> messages;
        std::set<model::Id> told_runs;
        std::vector<std::string> lines;
        std::int64_t retried = 0;
        const auto asked_before = said.overdue;
        const auto work = [&](db::Connection& c) -> Result<void> {
            said.overdue = asked_before; // a transaction that is tried again has asked nobody yet
            assigned = false;
            step.reset();
            messages.clear();
            told_runs.clear();
            lines.clear();
            retried = 0;
            PERFRIG_TRY(const auto block, db::queue::block(c, lease.block_id));
            PERFRIG_TRY(const auto submission, db::submissions::get(c, block.submission_id));
            PERFRIG_TRY(prepared_again, prepare_unanswered(c, lease, said, messages));
            PERFRIG_TRY(retried, make_retries(c, lease, submission, lines));
            PERFRIG_CHECK(assign_retries(c, lease, submission, said, messages, told_runs));
            assigned = !messages.empty();
            if (prepared_again && !assigned) return {}; // none of its runs can be made: the lease has ended
            PERFRIG_TRY(const auto progress, db::queue::progress(c, lease.block_id));
            BlockView view;
            view.lease = lease.state;
            view.open_runs = progress.open;
            view.worked = agent.worked_token == lease.token && !assigned;
            view.cancel_requested = submission.cancel_requested;
            view.told_to_cancel = said.cancel;
            view.told_to_end = said.end;
            if (progress.open == 0) {
                PERFRIG_TRY(view.all_ended_for, ended_for(c, lease.block_id));
                PERFRIG_TRY(view.missing_artifacts, db::artifacts::incomplete_of_block(c, lease.block_id));
            }
            step = decide_block(view);
            if (*step == BlockStep::cancel_runs)
                messages.emplace_back(
                    protocol::CancelRun{lease.block_id, lease.token, 0,
                                        submission.reason.empty() ? "the submission is cancelled" : submission.reason});
            if (*step == BlockStep::end_block) {
                PERFRIG_CHECK(db::queue::set_state(c, agent.machine, lease.token, model::LeaseState::releasing));
                messages.emplace_back(protocol::EndBlock{lease.block_id, lease.token});
                lines.push_back("block " + std::to_string(lease.block_id) + " has no run left: its agent is to end it");
            }
            PERFRIG_CHECK(step_in_where_overdue(c, lease, said, messages, lines));
            return {};
        };
        PERFRIG_CHECK(pool_.run_in_transaction(work));
        said.runs.merge(told_runs);
        if (prepared_again) said.prepared = Steady::now();
        said.cancel = said.cancel || step == BlockStep::cancel_runs;
        said.end = said.end || step == BlockStep::end_block;
        out_.retried += retried;
        out_.cancelled += step == BlockStep::cancel_runs;
        out_.ended += step == BlockStep::end_block;
        for (auto& line : lines) tell(std::move(line));
        for (auto& message : messages) say(agent, std::move(message));
        return {};
    }

    // A granted block whose agent has not answered: prepare_block is under way; or it was never sent, since the answer
    // to the grant's commit was lost. An agent that has the block takes it for said twice.
    Result<bool> prepare_unanswered(db::Connection& c, const model::Lease& lease, const SaidToAgent& said,
                                    std::vector<protocol::FromController>& messages) {
        if (lease.state != model::LeaseState::granted || since(said.prepared) < answer_patience) return false;
        PERFRIG_TRY(const auto machine, db::machines::find_by_id(c, lease.machine_id));
        PERFRIG_TRY(auto runs, db::queue::runs_of_block(c, lease.block_id));
        std::erase_if(runs, [](const model::Run& run) { return run.state != model::RunState::assigned; });
        PERFRIG_TRY(messages, prepare_block(c, machine, lease, runs));
        return true;
    }

    Result<std::int64_t> make_retries(db::Connection& c, const model::Lease& lease, const model::Submission& submission,
                                      std::vector<std::string>& lines) {
        db::runs::Filter filter;
        filter.block = lease.block_id;
        filter.state = model::RunState::interrupted;
        std::int64_t made = 0;
        if (lease.state == model::LeaseState::releasing) return made; // too late for this lease: the block waits anew
        PERFRIG_TRY(const auto interrupted, db::runs::list(c, filter, {0, 1'000}));
        for (const auto& run : interrupted.items) {
            if (!retry_is_due(run.state, run.attempt, submission.cancel_requested)) continue;
            PERFRIG_TRY(const auto again, db::queue::retry(c, run.id, times_.start_within));
            if (!again || again->state != model::RunState::assigned ||
                out_.said[lease.machine_id].runs.contains(again->id))
                continue;
            ++made;
            lines.push_back("run " + std::to_string(run.id) + " was interrupted (" + run.reason + "): attempt " +
                            std::to_string(again->attempt) + " is run " + std::to_string(again->id));
        }
        return made;
    }

    // Retries that this session's agent was not told of: made just now, or by a controller that died before it spoke.
    // The agent takes a run that it has already for said twice.
    Result<void> assign_retries(db::Connection& c, const model::Lease& lease, const model::Submission& submission,
                                const SaidToAgent& said, std::vector<protocol::FromController>& messages,
                                std::set<model::Id>& told) {
        if (lease.state == model::LeaseState::releasing) return {};
        db::runs::Filter filter;
        filter.block = lease.block_id;
        filter.state = model::RunState::assigned;
        PERFRIG_TRY(auto assigned, db::runs::list(c, filter, {0, 1'000}));
        std::erase_if(assigned.items,
                      [&](const model::Run& run) { return run.attempt < 2 || said.runs.contains(run.id); });
        if (assigned.items.empty()) return {};
        std::reverse(assigned.items.begin(), assigned.items.end());
        PERFRIG_TRY(const auto machine, db::machines::find_by_id(c, lease.machine_id));
        PERFRIG_TRY(auto runs, resolve_runs(c, submission, machine, assigned.items));
        for (auto& run : runs) {
            told.insert(run.run);
            messages.emplace_back(protocol::AssignRun{lease.block_id, lease.token, std::move(run)});
        }
        return {};
    }

    Result<Milliseconds> ended_for(db::Connection& c, model::Id block) {
        PERFRIG_TRY(const auto runs, db::queue::runs_of_block(c, block));
        std::int64_t last = 0;
        for (const auto& run : runs) last = std::max(last, run.ended_utc_ns.value_or(0));
        return since_utc_ns(last);
    }

    Result<void> step_in_where_overdue(db::Connection& c, const model::Lease& lease, SaidToAgent& said,
                                       std::vector<protocol::FromController>& messages,
                                       std::vector<std::string>& lines) {
        if (lease.state == model::LeaseState::silent) return {};
        // Of this block alone: another's thousands, on a machine that died, must not hide its own.
        PERFRIG_TRY(const auto overdue, db::queue::overdue_runs(c, 1'000, lease.block_id));
        for (const auto& run : overdue) {
            PERFRIG_TRY(const auto late, lateness(c, run));
            const auto asked = said.overdue.find(run.id);
            std::optional<Milliseconds> asked_for;
            if (asked != said.overdue.end()) asked_for = since(asked->second);
            const std::string what = "run " + std::to_string(run.id) + " stayed " +
                                     std::string(model::to_string(run.state)) + " beyond its deadline";
            switch (decide_overdue(late, asked_for)) {
            case OverdueStep::wait: break;
            case OverdueStep::cancel_at_agent:
                said.overdue[run.id] = Steady::now();
                messages.emplace_back(protocol::CancelRun{lease.block_id, lease.token, run.id, what});
                lines.push_back(what + ": its agent is to cancel it");
                ++out_.overdue;
                break;
            case OverdueStep::fail:
                PERFRIG_CHECK(db::runs::change_state(c, run.id, model::RunState::failed,
                                                     what + ", and the agent did not end it when told to", std::nullopt,
                                                     "controller"));
                lines.push_back(what + ": it is called failed");
                break;
            }
        }
        return {};
    }

    // How far its deadline has passed. An assigned run's time begins when the run before it in the block has ended, and
    // while another run is open it has not begun.
    Result<Milliseconds> lateness(db::Connection& c, const model::Run& run) {
        auto late = since_utc_ns(run.deadline_utc_ns.value_or(SystemClock().utc_ns()));
        if (run.state != model::RunState::assigned) return late;
        PERFRIG_TRY(const auto runs, db::queue::runs_of_block(c, run.block_id));
        for (const auto& other : runs) {
            if (other.id == run.id) continue;
            const bool before =
                other.position < run.position || (other.position == run.position && other.attempt < run.attempt);
            if (!model::is_end(other.state)) {
                if (before || other.state != model::RunState::assigned) return Milliseconds{0};
            } else if (other.ended_utc_ns) {
                late = std::min(late, since_utc_ns(*other.ended_utc_ns) - times_.start_within);
            }
        }
        return late;
    }

    // Runs that were interrupted so late that their block ended before anybody made their retries.
    Result<void> retry_what_nobody_has() {
        PERFRIG_TRY(const auto runs, pool_.run([](db::Connection& c) { return db::queue::retryable(c, 100); }));
        for (const auto run : runs) {
            PERFRIG_TRY(const auto again,
                        pool_.run([&](db::Connection& c) { return db::queue::retry(c, run, times_.start_within); }));
            if (again) tell("run " + std::to_string(run) + " was interrupted as its block ended: it waits anew");
        }
        return {};
    }

    Result<void> finish_submissions() {
        PERFRIG_TRY(const auto open, pool_.run([](db::Connection& c) { return db::submissions::open(c); }));
        for (const auto submission : open) {
            PERFRIG_TRY(const auto state,
                        pool_.run([&](db::Connection& c) { return db::submissions::finish_if_done(c, submission); }));
            if (model::is_end(state))
                tell("submission " + std::to_string(submission) + " is " + std::string(model::to_string(state)));
        }
        return {};
    }

    db::Pool& pool_;
    PassInput input_;
    LeaseTimes times_;
    PassOutput out_;
};

} // namespace

PassOutput look_at_queue(db::Pool& pool, PassInput input, const LeaseTimes& times) {
    return Pass(pool, std::move(input), times).look();
}

} // namespace perfrig::queue
