#include "controller/queue/hello.hpp"

#include "controller/db/machines.hpp"
#include "controller/db/queue.hpp"
#include "controller/db/runs.hpp"
#include "controller/db/samples.hpp"
#include "controller/db/submissions.hpp"
#include "controller/db/tokens.hpp"
#include "controller/db/transaction.hpp"
#include "controller/queue/hello_decision.hpp"
#include "controller/queue/resolve_block.hpp"

namespace perfrig::queue {

namespace {

// The starts that this agent says it is, and was.
std::vector<db::machines::Start> starts_of(const protocol::Hello& hello) {
    std::vector<db::machines::Start> starts{{hello.epoch, hello.start_id}};
    for (const auto& range : hello.spool)
        if (range.epoch != hello.epoch) starts.push_back({range.epoch, range.start_id});
    return starts;
}

Result<std::vector<protocol::FromController>> carry_out(db::Connection& c, const model::Machine& machine,
                                                        const std::optional<model::Lease>& lease, LeaseStep step,
                                                        const LeaseTimes& times) {
    using Messages = std::vector<protocol::FromController>;
    switch (step) {
    case LeaseStep::none: return Messages{};
    case LeaseStep::keep:
        PERFRIG_CHECK(db::queue::set_state(c, machine.id, lease->token, model::LeaseState::active));
        PERFRIG_CHECK(db::queue::renew(c, machine.id, lease->token, times.lease));
        return Messages{};
    case LeaseStep::end_again: return Messages{protocol::EndBlock{lease->block_id, lease->token}};
    case LeaseStep::prepare_again: {
        PERFRIG_CHECK(db::queue::renew(c, machine.id, lease->token, times.lease));
        PERFRIG_TRY(auto runs, db::queue::runs_of_block(c, lease->block_id));
        std::erase_if(runs, [](const model::Run& run) { return run.state != model::RunState::assigned; });
        return prepare_block(c, machine, *lease, runs);
    }
    case LeaseStep::finish:
        PERFRIG_CHECK(db::queue::end(c, machine.id, lease->token, model::BlockState::done, ""));
        return Messages{};
    case LeaseStep::revoke:
        PERFRIG_CHECK(db::queue::revoke(c, machine.id, "the agent came back without the block", "controller"));
        return Messages{};
    }
    return Messages{};
}

Result<void> set_machine_state(db::Connection& c, const model::Machine& machine, model::MachineState wanted) {
    // What carrying out made of it (an ended lease frees the machine) is read again.
    PERFRIG_TRY(const auto now, db::machines::find_by_id(c, machine.id));
    if (now.state == wanted) return {};
    const model::MachineState from[] = {now.state};
    PERFRIG_CHECK(db::machines::change_state(
        c, machine.id, from, wanted,
        wanted == model::MachineState::restoring ? "settings of an earlier run are not restored yet" : "", "agent"));
    return {};
}

} // namespace

Result<std::vector<protocol::FromController>> prepare_block(db::Connection& c, const model::Machine& machine,
                                                            const model::Lease& lease,
                                                            const std::vector<model::Run>& runs) {
    std::vector<protocol::FromController> messages;
    protocol::PrepareBlock prepare{lease.block_id, lease.token, {}};
    PERFRIG_TRY(const auto block, db::queue::block(c, lease.block_id));
    PERFRIG_TRY(const auto submission, db::submissions::get(c, block.submission_id));
    PERFRIG_TRY(prepare.runs, resolve_runs(c, submission, machine, runs));
    std::string reason = "no run of it can be made on this machine";
    if (encoded_bytes(prepare.runs) > most_block_bytes) {
        reason = "its runs are too much for one message: split the experiment";
        for (const auto& run : prepare.runs)
            PERFRIG_CHECK(
                db::runs::change_state(c, run.run, model::RunState::refused, reason, std::nullopt, "controller"));
        prepare.runs.clear();
    }
    if (prepare.runs.empty())
        PERFRIG_CHECK(db::queue::end(c, machine.id, lease.token, model::BlockState::refused, reason));
    else
        messages.emplace_back(std::move(prepare));
    return messages;
}

Result<HelloTaken> take_hello(db::Connection& c, model::Id machine_id, const protocol::Hello& hello,
                              const LeaseTimes& times) {
    PERFRIG_TRY(auto transaction, db::Transaction::begin(c));
    PERFRIG_TRY(auto before, db::machines::find_by_id(c, machine_id));
    PERFRIG_CHECK(check_hello(hello, before));
    db::machines::HelloUpdate update{hello.boot_id, hello.epoch,       hello.agent_version, hello.profile,
                                     hello.labels,  hello.metrics_url, hello.environment};
    PERFRIG_TRY(auto machine, db::machines::hello(c, machine_id, update));
    PERFRIG_TRY(const auto other, db::machines::claim_starts(c, machine_id, starts_of(hello)));
    if (other)
        return fail(ErrorKind::conflict, "take the hello of", machine.name,
                    "start " + std::to_string(*other) +
                        " was another agent's: two agents use one state directory, or one of them a copy of it",
                    "stop the one that should not be; a machine of its own needs a new state directory and name");
    PERFRIG_TRY(const auto lease, db::queue::lease_of(c, machine_id));
    const auto decision = decide_hello(hello, machine, lease);

    HelloTaken taken;
    PERFRIG_TRY(taken.then, carry_out(c, machine, lease, decision.lease, times));
    PERFRIG_TRY(const auto lease_after, db::queue::lease_of(c, machine_id));
    // Preparing again may have refused every run and ended the lease.
    const bool lost = decision.lease == LeaseStep::prepare_again && !lease_after;
    PERFRIG_CHECK(
        set_machine_state(c, machine, lost ? decide_hello(hello, machine, std::nullopt).state : decision.state));
    PERFRIG_TRY(taken.welcome.cursors, db::samples::cursors(c, machine_id));
    PERFRIG_TRY(taken.welcome.scrape_token_hashes, db::tokens::scrape_hashes(c));
    taken.welcome.version = *choose_version(hello);
    taken.welcome.heartbeat_every_ms = times.heartbeat.count();
    taken.welcome.lease_ms = times.lease.count();
    taken.welcome.keep_block = decision.keep_block;
    taken.told = "agent of " + machine.name + " says hello: epoch " + std::to_string(hello.epoch) + ", " +
                 (decision.keep_block ? "keeps block " + std::to_string(decision.keep_block) : "has no block") +
                 ", machine " + std::string(model::to_string(decision.state));
    PERFRIG_CHECK(transaction.commit());
    return taken;
}

} // namespace perfrig::queue
