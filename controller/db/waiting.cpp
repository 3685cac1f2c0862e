#include "controller/db/waiting.hpp"

#include "controller/db/sql.hpp"

#include <algorithm>

namespace perfrig::db::waiting {

namespace {

// Whether the machine m is what the submission s asks for.
constexpr const char* suits = "(s.machine_name is null or s.machine_name = m.name) and m.labels @> s.machine_labels";

model::MachineInSight machine_from(const Rows& rows, int i, const std::vector<std::string>& roles) {
    model::MachineInSight out;
    out.name = rows.text(i, 0);
    out.suits = rows.boolean(i, 1);
    out.state = word(model::parse_machine_state(rows.text(i, 2)));
    out.previous_state = word(model::parse_machine_state(rows.text(i, 3)));
    out.reason = rows.text(i, 4);
    out.last_seen_utc_ns = rows.maybe_integer(i, 5);
    const Json granted = rows.json(i, 6);
    for (const auto& role : roles)
        if (out.suits && granted.is_object() && !granted.contains(role)) out.lacking_roles.push_back(role);
    out.held_by = rows.text(i, 7);
    out.busy_with = rows.id(i, 8);
    out.busy_seconds_left = rows.maybe_real(i, 9);
    return out;
}

std::vector<std::string> roles_of(const Json& plan) {
    std::vector<std::string> out;
    if (!plan.is_object()) return out;
    for (const Json& role : plan.value("roles_needed", Json::array()))
        if (role.is_string()) out.push_back(role.get<std::string>());
    return out;
}

} // namespace

Result<model::WaitingView> view(Connection& c, const model::Submission& submission) {
    model::WaitingView out;
    out.submission = submission.id;
    out.machine_name = submission.machine_name;
    out.machine_labels = string_map(submission.machine_labels);
    static const std::string machines =
        std::string("select m.name, ") + suits + ", m.state, m.previous_state, m.state_reason, " +
        utc_ns("m.last_seen") +
        ", coalesce(m.profile->'roles', 'null'), case when 'held' in (m.state, m.previous_state) or 'draining' in "
        "(m.state, "
        "m.previous_state) then coalesce((select actor from event where subject = 'machine/' || m.name "
        "and what = 'hold' order by id desc limit 1), '') else '' end, b.submission_id, "
        "(other.plan->>'expected_seconds')::float8 / nullif((other.plan->>'run_count')::float8, 0) * "
        "(select count(*) from run r where r.block_id = b.id and r.state in ('assigned', 'preparing', 'warming', "
        "'measuring', 'stopping', 'uploading')) "
        "from submission s cross join machine m left join lease l on l.machine_id = m.id "
        "left join block b on b.id = l.block_id left join submission other on other.id = b.submission_id "
        "where s.id = $1 and m.forgotten_at is null order by m.name";
    PERFRIG_TRY(const Rows rows, c.exec(machines.c_str(), {submission.id}));
    const auto roles = roles_of(submission.plan);
    for (int i = 0; i < rows.size(); ++i) out.machines.push_back(machine_from(rows, i, roles));

    // Its own first block that waits, and the blocks before that which some machine could be given instead.
    static const std::string ahead =
        std::string(
            "with own as (select min(ordinal) as ordinal from block where submission_id = $1 and state = 'pending'), "
            "mine as (select s.*, own.ordinal from submission s, own where s.id = $1 and own.ordinal is not null "
            "and s.state in ('queued', 'running') and not s.cancel_requested) "
            "select count(*), (select count(*) from mine, block b join submission s on s.id = b.submission_id "
            "where b.state = 'pending' and s.state in ('queued', 'running') and not s.cancel_requested "
            "and (s.priority > mine.priority or (s.priority = mine.priority and s.id < mine.id)) "
            "and exists (select from machine m where m.forgotten_at is null and ") +
        suits +
        " and (mine.machine_name is null or mine.machine_name = m.name) and m.labels @> mine.machine_labels)) "
        "from mine";
    PERFRIG_TRY(const Rows place, c.exec(ahead.c_str(), {submission.id}));
    out.pending = place.integer(0, 0) > 0;
    out.blocks_ahead = place.integer(0, 1);
    return out;
}

} // namespace perfrig::db::waiting
