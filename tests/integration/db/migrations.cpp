#include "tests/integration/db/scratch.hpp"

#include "controller/db/partitions.hpp"

#include <thread>

using namespace perfrig;
using namespace perfrig::test;

TEST_CASE("migrating twice applies everything once") {
    Scratch db(false);
    CHECK(good(db::migrate(db.c())).size() == db::embedded_migrations().size());
    CHECK(good(db::migrate(db.c())).empty());
    CHECK(count(db.c(), "select count(*) from schema_migration") == std::int64_t(db::embedded_migrations().size()));
}

TEST_CASE("controllers that start together migrate once between them") {
    Scratch db(false);
    std::vector<std::thread> threads;
    std::atomic<int> applied = 0, failed = 0;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            const auto connection = db.connect();
            const auto done = db::migrate(*connection);
            if (done)
                applied += static_cast<int>(done->size());
            else
                failed += 1;
        });
    for (auto& thread : threads) thread.join();
    CHECK(failed == 0);
    CHECK(applied == int(db::embedded_migrations().size()));
}

TEST_CASE("a migration that changed after it was applied is refused with the remedy") {
    Scratch db;
    auto migrations = db::embedded_migrations();
    migrations.front().sql += "\n-- a later thought";
    const auto refused = db::migrate(db.c(), migrations);
    REQUIRE(!refused);
    CHECK(refused.error().kind == ErrorKind::conflict);
    CHECK(refused.error().text().find("checksum") != std::string::npos);
    CHECK(!refused.error().remedy.empty());
}

TEST_CASE("a database that a newer program migrated is refused and left alone") {
    Scratch db;
    auto newer = db::embedded_migrations();
    newer.push_back({static_cast<int>(newer.size()) + 1, "9999_future.sql", "create table future (id int)"});
    good(db::migrate(db.c(), newer));
    const auto refused = db::migrate(db.c());
    REQUIRE(!refused);
    CHECK(refused.error().text().find("newer") != std::string::npos);
}

TEST_CASE("a migration that fails leaves nothing behind") {
    Scratch db;
    auto broken = db::embedded_migrations();
    broken.push_back(
        {static_cast<int>(broken.size()) + 1, "0099_broken.sql", "create table half (id int); select 1/0"});
    CHECK(!db::migrate(db.c(), broken));
    CHECK(count(db.c(), "select count(*) from pg_class where relname = 'half'") == 0);
    CHECK(good(db::migrate(db.c())).empty());
}

TEST_CASE("partitions are made once by whoever needs them first") {
    Scratch db;
    std::vector<std::thread> threads;
    std::atomic<int> failed = 0;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            const auto connection = db.connect();
            for (int n = 0; n < 5; ++n)
                if (const auto made = db::ensure_partitions(*connection, 1, n * db::runs_per_partition + 1); !made) {
                    failed += 1;
                    MESSAGE(made.error().text());
                }
        });
    for (auto& thread : threads) thread.join();
    CHECK(failed == 0);
    CHECK(count(db.c(), "select count(*) from pg_inherits where inhparent = 'live_frame'::regclass") == 6);
    CHECK(count(db.c(), "select count(*) from pg_inherits where inhparent = 'series_chunk'::regclass") == 6);
}
