#include "controller/db/events.hpp"

#include "controller/db/sql.hpp"

#include <algorithm>

namespace perfrig::db::events {

Result<void> add(Connection& c, std::string_view actor, std::string_view subject, std::string_view what,
                 const Json& detail) {
    // With the submission that it belongs to, if any: what followers ask by.
    PERFRIG_CHECK(
        c.exec("insert into event (actor, subject, what, detail, submission_id) select $1, $2, $3, $4::jsonb, "
               "case split_part($2, '/', 1) when 'submission' then number "
               "when 'run' then (select submission_id from run where id = number) "
               "when 'block' then (select submission_id from block where id = number) end "
               "from (select case when $2 ~ '^(submission|run|block)/[0-9]+$' "
               "then split_part($2, '/', 2)::bigint end) as named(number)",
               {actor, subject, what, detail}));
    return {};
}

Result<Page<model::Event>> list(Connection& c, std::string_view subject, PageRequest page) {
    static const std::string sql = "select id, " + utc_ns("at") +
                                   ", actor, subject, what, detail from event where subject = $1 "
                                   "and ($2 = 0::bigint or id < $2) order by id desc limit $3";
    const int limit = std::clamp(page.limit, 1, 1000);
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {subject, page.below, limit + 1}));
    Page<model::Event> out;
    for (int i = 0; i < std::min(rows.size(), limit); ++i)
        out.items.push_back({rows.integer(i, 0), rows.integer(i, 1), std::string(rows.text(i, 2)),
                             std::string(rows.text(i, 3)), std::string(rows.text(i, 4)), rows.json(i, 5)});
    if (rows.size() > limit) out.next = out.items.back().id;
    return out;
}

} // namespace perfrig::db::events
