#include "controller/db/events.hpp"

#include "controller/db/sql.hpp"

#include <algorithm>

namespace perfrig::db::events {

Result<void> add(Connection& c, std::string_view actor, std::string_view subject, std::string_view what,
                 const Json& detail) {
    PERFRIG_CHECK(c.exec("insert into event (actor, subject, what, detail) values ($1, $2, $3, $4::jsonb)",
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
