#include "controller/db/partitions.hpp"

#include "controller/db/transaction.hpp"

namespace perfrig::db {

namespace {
// Attached rather than created in place: that needs no lock that readers and writers of other partitions would wait
// for.
Result<void> make_partition(Connection& c, const std::string& parent, std::int64_t number) {
    const std::string name = parent + "_" + std::to_string(number);
    const std::string from = std::to_string(number * runs_per_partition);
    const std::string to = std::to_string((number + 1) * runs_per_partition);
    return c.script("create table " + name + " (like " + parent + " including all); alter table " + parent +
                    " attach partition " + name + " for values from (" + from + ") to (" + to + ")");
}

// Asks the table pg_class: to_regclass may answer from a cache that another session's commit has not reached yet.
Result<std::int64_t> missing(Connection& c, std::int64_t number) {
    const std::string suffix = std::to_string(number);
    PERFRIG_TRY(const Rows there,
                c.exec("select 2 - count(*) from pg_class where relname in ($1, $2) and relnamespace = "
                       "(select relnamespace from pg_class where oid = 'live_frame'::regclass)",
                       {"live_frame_" + suffix, "series_chunk_" + suffix}));
    return there.integer(0, 0);
}
} // namespace

Result<void> ensure_partitions(Connection& c, std::int64_t first_run, std::int64_t last_run) {
    const std::int64_t first = first_run / runs_per_partition;
    const std::int64_t last = last_run / runs_per_partition + 1; // one ahead
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    bool locked = false;
    for (std::int64_t number = first; number <= last; ++number) {
        PERFRIG_TRY(std::int64_t lacking, missing(c, number));
        if (lacking == 0) continue;
        if (!locked) { // released when the transaction ends; whoever waited for it looks again
            PERFRIG_CHECK(c.exec("select pg_advisory_xact_lock(hashtext('perfrig partitions'))"));
            locked = true;
            PERFRIG_TRY(lacking, missing(c, number));
            if (lacking == 0) continue;
        }
        PERFRIG_CHECK(make_partition(c, "live_frame", number));
        PERFRIG_CHECK(make_partition(c, "series_chunk", number));
    }
    return transaction.commit();
}

} // namespace perfrig::db
