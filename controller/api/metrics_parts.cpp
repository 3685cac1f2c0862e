#include "controller/api/metrics_parts.hpp"

#include <cmath>
#include <limits>

namespace perfrig::api {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily& family(std::vector<MetricFamily>& families, std::string name, std::string help, MetricType type) {
    return families.emplace_back(MetricFamily{std::move(name), std::move(help), type, {}});
}

void add(MetricFamily& to, double value, std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (to.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    to.metric.push_back(std::move(metric));
}

void gauge(std::vector<MetricFamily>& families, std::string name, std::string help, double value) {
    add(family(families, std::move(name), std::move(help), MetricType::Gauge), value);
}
void counter(std::vector<MetricFamily>& families, std::string name, std::string help, std::int64_t value) {
    add(family(families, std::move(name), std::move(help), MetricType::Counter), static_cast<double>(value));
}

void by_state(std::vector<MetricFamily>& families, std::string name, std::string help,
              const std::map<std::string, std::int64_t>& counts) {
    auto& to = family(families, std::move(name), std::move(help), MetricType::Gauge);
    for (const auto& [state, count] : counts) add(to, static_cast<double>(count), {{"state", state}});
}

void append_ingest(std::vector<MetricFamily>& families, const agents::IngestCounts& counts) {
    auto& records = family(families, "perfrig_ingest_records_total",
                           "Spool records that agents sent, by what became of them.", MetricType::Counter);
    add(records, static_cast<double>(counts.stored), {{"result", "stored"}});
    add(records, static_cast<double>(counts.skipped), {{"result", "known"}});
    add(records, static_cast<double>(counts.rejected), {{"result", "rejected"}});
    counter(families, "perfrig_ingest_bytes_total", "Bytes of the batches that were stored.", counts.bytes);
    counter(families, "perfrig_ingest_failed_batches_total", "Tries to store a batch that failed.",
            counts.failed_batches);
    auto& latency =
        family(families, "perfrig_ingest_commit_seconds", "From a batch's turn to its commit.", MetricType::Histogram);
    ClientMetric metric;
    std::int64_t cumulative = 0;
    for (std::size_t i = 0; i < counts.latency.size(); ++i) {
        cumulative += counts.latency[i];
        const double bound =
            i < counts.bucket_seconds.size() ? counts.bucket_seconds[i] : std::numeric_limits<double>::infinity();
        metric.histogram.bucket.push_back({static_cast<std::uint64_t>(cumulative), bound});
    }
    metric.histogram.sample_count = static_cast<std::uint64_t>(cumulative);
    metric.histogram.sample_sum = counts.latency_seconds;
    latency.metric.push_back(std::move(metric));
    counter(families, "perfrig_agent_heartbeats_total", "Heartbeats taken.", counts.heartbeats);
    counter(families, "perfrig_agent_fenced_total", "Messages with a token that is not the lease's.",
            counts.fenced_heartbeats);
    counter(families, "perfrig_agent_sessions_total", "Links that agents opened.", counts.sessions);
}

void append_scheduler(std::vector<MetricFamily>& families, const queue::SchedulerCounts& counts) {
    auto& decisions =
        family(families, "perfrig_scheduler_decisions_total", "What the scheduler decided.", MetricType::Counter);
    add(decisions, static_cast<double>(counts.granted), {{"decision", "grant"}});
    add(decisions, static_cast<double>(counts.retried), {{"decision", "retry"}});
    add(decisions, static_cast<double>(counts.overdue), {{"decision", "overdue"}});
    add(decisions, static_cast<double>(counts.silenced), {{"decision", "silent"}});
    add(decisions, static_cast<double>(counts.ended), {{"decision", "end_block"}});
    add(decisions, static_cast<double>(counts.cancelled), {{"decision", "cancel"}});
    counter(families, "perfrig_scheduler_passes_total", "Looks at the queue.", counts.passes);
    counter(families, "perfrig_scheduler_failed_passes_total", "Looks that the database cut short.",
            counts.failed_passes);
    gauge(families, "perfrig_scheduler_last_pass_seconds", "How long the last look took.", counts.last_pass_seconds);
}

} // namespace

Result<QueueDepth> queue_depth(db::Connection& c) {
    QueueDepth depth;
    const auto fill = [&](std::map<std::string, std::int64_t>& counts, const char* sql) -> Result<void> {
        PERFRIG_TRY(const auto rows, c.exec(sql));
        for (int i = 0; i < rows.size(); ++i) counts[std::string(rows.text(i, 0))] = rows.integer(i, 1);
        return {};
    };
    PERFRIG_CHECK(fill(depth.blocks,
                       "select state, count(*) from block where state not in ('done','refused','cancelled') "
                       "group by state"));
    PERFRIG_CHECK(fill(depth.runs, "select state, count(*) from run where state not in "
                                   "('completed','refused','failed','cancelled','interrupted') group by state"));
    PERFRIG_CHECK(
        fill(depth.machines, "select state, count(*) from machine where forgotten_at is null group by state"));
    PERFRIG_TRY(const auto rows,
                c.exec("select coalesce(extract(epoch from now() - min(s.created_at))::bigint, 0) from block b "
                       "join submission s on s.id = b.submission_id where b.state = 'pending'"));
    depth.oldest_pending_seconds = rows.integer(0, 0);
    return depth;
}

void append_parts(std::vector<prometheus::MetricFamily>& families, const Services& services, const QueueDepth& depth,
                  bool database_up) {
    auto& info = family(families, "perfrig_controller_info", "The program.", MetricType::Gauge);
    add(info, 1, {{"version", services.version}});
    gauge(families, "perfrig_database_up", "Whether the database answered this scrape.", database_up ? 1 : 0);
    gauge(families, "perfrig_database_connections_idle", "Connections of the pool that are open and unused.",
          static_cast<double>(services.pool.idle()));
    gauge(families, "perfrig_database_connections_limit", "The pool's size.",
          static_cast<double>(services.pool.size()));
    gauge(families, "perfrig_agents_connected", "Agents connected to this controller.",
          static_cast<double>(services.agents.registry.size()));
    gauge(families, "perfrig_runs_to_finish", "Ended runs that wait to be sealed and evaluated here.",
          static_cast<double>(services.agents.finisher.waiting()));
    counter(families, "perfrig_runs_finished_total", "Runs sealed and evaluated.", services.agents.finisher.finished());
    counter(families, "perfrig_runs_finish_failed_total", "Tries to seal and evaluate a run that failed.",
            services.agents.finisher.failed());
    if (database_up) {
        by_state(families, "perfrig_queue_blocks", "Blocks that have not ended, by state.", depth.blocks);
        by_state(families, "perfrig_queue_runs", "Runs that have not ended, by state.", depth.runs);
        by_state(families, "perfrig_machines", "Machines by state.", depth.machines);
        gauge(families, "perfrig_queue_oldest_pending_seconds", "Age of the oldest submission that waits.",
              static_cast<double>(depth.oldest_pending_seconds));
    }
    append_ingest(families, services.agents.counts);
    append_scheduler(families, services.agents.scheduler.counts());
}

} // namespace perfrig::api
