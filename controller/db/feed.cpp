#include "controller/db/feed.hpp"

namespace perfrig::db::feed {

Result<std::vector<model::Event>> of_submission(Connection& c, model::Id submission, std::int64_t after, int limit) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select id, (extract(epoch from at) * 1000000)::bigint * 1000, actor, subject, what, detail "
                       "from event where submission_id = $1 and id > $2 order by id limit $3",
                       {submission, after, limit}));
    std::vector<model::Event> events;
    for (int i = 0; i < rows.size(); ++i)
        events.push_back({rows.integer(i, 0), rows.integer(i, 1), std::string(rows.text(i, 2)),
                          std::string(rows.text(i, 3)), std::string(rows.text(i, 4)), rows.json(i, 5)});
    return events;
}

} // namespace perfrig::db::feed
