#include "controller/queue/resolve_block.hpp"

#include "common/experiment/experiment.hpp"
#include "common/experiment/plan.hpp"
#include "common/placement/profile.hpp"
#include "controller/db/queue.hpp"
#include "controller/db/runs.hpp"

namespace perfrig::queue {

namespace {

RoleGrants grants_of(const Profile& profile) {
    RoleGrants grants;
    for (const auto& [role, cpus] : profile.roles) grants.roles[role] = cpus.text();
    for (const auto& group : profile.share) grants.share.emplace_back(group.begin(), group.end());
    return grants;
}

Result<Experiment> experiment_of(const model::Submission& submission) {
    auto outcome = parse_experiment(submission.definition);
    if (outcome.experiment) return std::move(*outcome.experiment);
    return fail(ErrorKind::bad_input, "read the definition of submission", std::to_string(submission.id),
                outcome.faults.empty() ? "it is not understood" : outcome.faults.front().text("definition"),
                "it was accepted by another version of the controller: submit it again");
}

Result<ResolvedRun> resolve_run(const Result<Experiment>& experiment, const Result<Profile>& profile,
                                const model::Run& run) {
    if (!experiment) return experiment.error();
    if (!profile) return profile.error();
    const Cell cell{static_cast<std::uint32_t>(run.cell_ordinal), run.levels, cell_key(run.levels)};
    return resolve(*experiment, cell, run.replicate, grants_of(*profile));
}

} // namespace

Result<std::vector<protocol::AssignedRun>> resolve_runs(db::Connection& c, const model::Submission& submission,
                                                        const model::Machine& machine,
                                                        const std::vector<model::Run>& runs) {
    const auto experiment = experiment_of(submission);
    const auto profile = profile_from_json(machine.profile);
    std::vector<protocol::AssignedRun> assigned;
    for (const auto& run : runs) {
        auto resolved = resolve_run(experiment, profile, run);
        if (!resolved) {
            PERFRIG_CHECK(db::runs::change_state(c, run.id, model::RunState::refused, resolved.error().text(),
                                                 std::nullopt, "controller"));
            continue;
        }
        Json whole = to_json(*resolved);
        PERFRIG_TRY(const bool stored,
                    db::queue::set_resolved(c, run.id, redact(whole, resolved->secrets), hash_of(*resolved)));
        if (stored) assigned.push_back({run.id, run.attempt, std::move(whole)});
    }
    return assigned;
}

std::size_t encoded_bytes(const std::vector<protocol::AssignedRun>& runs) {
    std::size_t bytes = 0;
    for (const auto& run : runs) bytes += run.resolved.dump().size() + 64;
    return bytes;
}

} // namespace perfrig::queue
