// What the routes of the table do, one file a resource. Names are the operations' names.
#pragma once

#include "controller/api/services.hpp"

namespace perfrig::api {

using Async = boost::asio::awaitable<HttpResponse>;
using Shared = std::shared_ptr<const Request>;

// service.cpp
Async health(Services& services, Shared request);
Async metrics(Services& services, Shared request);
Async openapi(Services& services, Shared request);
Result<HttpResponse> prometheus_targets(db::Connection& c, const Request& request);

// plans.cpp
Result<HttpResponse> validate(db::Connection& c, const Request& request);
Result<HttpResponse> plan(db::Connection& c, const Request& request);

// submit.cpp, submissions.cpp, results.cpp, follow.cpp
Async submit(Services& services, Shared request);
Result<HttpResponse> list_submissions(db::Connection& c, const Request& request);
Result<HttpResponse> get_submission(db::Connection& c, const Request& request);
Async cancel_submission(Services& services, Shared request);
Result<HttpResponse> list_submission_runs(db::Connection& c, const Request& request);
Result<HttpResponse> submission_results(db::Connection& c, const Request& request);
Async submission_events(Services& services, Shared request);
Result<Json> submission_document(db::Connection& c, model::Id submission);

// experiments.cpp
Result<HttpResponse> list_experiments(db::Connection& c, const Request& request);
Result<HttpResponse> get_experiment(db::Connection& c, const Request& request);

// runs.cpp, samples.cpp, artifacts.cpp
Result<HttpResponse> list_runs(db::Connection& c, const Request& request);
Result<HttpResponse> get_run(db::Connection& c, const Request& request);
Result<HttpResponse> run_metrics(db::Connection& c, const Request& request);
Result<HttpResponse> run_findings(db::Connection& c, const Request& request);
Result<HttpResponse> run_series(db::Connection& c, const Request& request);
Result<HttpResponse> series_samples(db::Connection& c, const Request& request);
Result<HttpResponse> run_live(db::Connection& c, const Request& request);
Result<HttpResponse> run_artifacts(db::Connection& c, const Request& request);
Result<HttpResponse> artifact_bytes(db::Connection& c, const Request& request);

// machines.cpp
Async list_machines(Services& services, Shared request);
Async get_machine(Services& services, Shared request);
Async hold_machine(Services& services, Shared request);
Async release_machine(Services& services, Shared request);
Async forget_machine(Services& services, Shared request);

// tokens.cpp
Result<HttpResponse> list_tokens(db::Connection& c, const Request& request);
Result<HttpResponse> create_token(db::Connection& c, const Request& request);
Async revoke_token(Services& services, Shared request);

// agent.cpp
Async agent_link(Services& services, Shared request); // without an upgrade
Async agent_join(Services& services, Shared request);
Async put_artifact(Services& services, Shared request);
Result<HttpResponse> head_artifact(db::Connection& c, const Request& request);

} // namespace perfrig::api
