#include "controller/api/handlers.hpp"

namespace perfrig::api {

const std::map<std::string, Handler, std::less<>>& handlers() {
    static const std::map<std::string, Handler, std::less<>> table{
        {"health", AsyncHandler(health)},
        {"metrics", AsyncHandler(metrics)},
        {"openapi", AsyncHandler(openapi)},
        {"prometheus_targets", StoreHandler(prometheus_targets)},
        {"validate", StoreHandler(validate)},
        {"plan", StoreHandler(plan)},
        {"submit", AsyncHandler(submit)},
        {"list_submissions", StoreHandler(list_submissions)},
        {"get_submission", StoreHandler(get_submission)},
        {"cancel_submission", AsyncHandler(cancel_submission)},
        {"list_submission_runs", StoreHandler(list_submission_runs)},
        {"submission_results", StoreHandler(submission_results)},
        {"submission_events", AsyncHandler(submission_events)},
        {"list_experiments", StoreHandler(list_experiments)},
        {"get_experiment", StoreHandler(get_experiment)},
        {"list_runs", StoreHandler(list_runs)},
        {"get_run", StoreHandler(get_run)},
        {"run_metrics", StoreHandler(run_metrics)},
        {"run_findings", StoreHandler(run_findings)},
        {"run_series", StoreHandler(run_series)},
        {"series_samples", StoreHandler(series_samples)},
        {"run_live", StoreHandler(run_live)},
        {"run_artifacts", StoreHandler(run_artifacts)},
        {"artifact_bytes", StoreHandler(artifact_bytes)},
        {"list_machines", AsyncHandler(list_machines)},
        {"get_machine", AsyncHandler(get_machine)},
        {"hold_machine", AsyncHandler(hold_machine)},
        {"release_machine", AsyncHandler(release_machine)},
        {"forget_machine", AsyncHandler(forget_machine)},
        {"list_tokens", StoreHandler(list_tokens)},
        {"create_token", StoreHandler(create_token)},
        {"revoke_token", AsyncHandler(revoke_token)},
        {"agent_link", AsyncHandler(agent_link)},
        {"agent_join", AsyncHandler(agent_join)},
        {"put_artifact", AsyncHandler(put_artifact)},
        {"head_artifact", StoreHandler(head_artifact)},
    };
    return table;
}

} // namespace perfrig::api
