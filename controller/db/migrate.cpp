#include "controller/db/migrate.hpp"

#include "common/base/hash.hpp"
#include "controller/db/transaction.hpp"
#include "schemas/embedded.hpp"

#include <algorithm>
#include <map>

namespace perfrig::db {

namespace {

struct Applied {
    std::string name, sha256;
};

Result<std::map<int, Applied>> applied(Connection& c) {
    PERFRIG_TRY(const Rows rows, c.exec("select number, name, sha256 from schema_migration order by number"));
    std::map<int, Applied> out;
    for (int i = 0; i < rows.size(); ++i)
        out[static_cast<int>(rows.integer(i, 0))] = {std::string(rows.text(i, 1)), std::string(rows.text(i, 2))};
    return out;
}

Result<void> check_history(const std::map<int, Applied>& done, std::span<const Migration> known) {
    for (const auto& [number, was] : done) {
        const auto same = [number = number](const Migration& one) { return one.number == number; };
        const auto found = std::ranges::find_if(known, same);
        if (found == known.end())
            return fail(ErrorKind::conflict, "use the database", "",
                        "it has migration " + was.name +
                            ", which this program does not know: a newer program migrated it",
                        "start that newer version, or restore a backup from before it");
        if (sha256_hex(found->sql) != was.sha256)
            return fail(ErrorKind::conflict, "use the database", "",
                        "migration " + found->name + " is not the one that was applied to it (its checksum changed)",
                        "start the version that made the database; during development, drop the database");
    }
    return {};
}

} // namespace

std::vector<Migration> embedded_migrations() {
    constexpr std::string_view folder = "migrations/";
    std::vector<Migration> out;
    for (const schemas::EmbeddedFile& file : schemas::files()) {
        if (!file.name.starts_with(folder)) continue;
        Migration one;
        one.name = file.name.substr(folder.size());
        one.number = std::stoi(one.name.substr(0, 4));
        one.sql = file.content;
        out.push_back(std::move(one));
    }
    return out; // names are sorted, so numbers are
}

Result<std::vector<int>> migrate(Connection& c, std::span<const Migration> migrations) {
    for (std::size_t i = 0; i < migrations.size(); ++i)
        if (migrations[i].number != static_cast<int>(i) + 1)
            return fail(ErrorKind::internal, "migrate", migrations[i].name, "the numbers have a gap");
    std::vector<int> now;
    // All of them in one transaction, which the lock lasts as long as: half a migration is never seen.
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(c.exec("select pg_advisory_xact_lock(hashtext('perfrig migrations'))"));
    PERFRIG_CHECK(c.exec("create table if not exists schema_migration (number int primary key, name text not null, "
                         "sha256 text not null, applied_at timestamptz not null default now())"));
    PERFRIG_TRY(const auto done, applied(c));
    PERFRIG_CHECK(check_history(done, migrations));
    for (const Migration& one : migrations) {
        if (done.contains(one.number)) continue;
        PERFRIG_CHECK(c.script(one.sql));
        PERFRIG_CHECK(c.exec("insert into schema_migration (number, name, sha256) values ($1, $2, $3)",
                             {one.number, one.name, sha256_hex(one.sql)}));
        now.push_back(one.number);
    }
    PERFRIG_CHECK(transaction.commit());
    return now;
}

Result<std::vector<int>> migrate(Connection& c) { return migrate(c, embedded_migrations()); }

} // namespace perfrig::db
