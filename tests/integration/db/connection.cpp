#include "tests/integration/db/scratch.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace perfrig;
using namespace perfrig::test;

TEST_CASE("values come back as they went in") {
    Scratch db;
    const std::vector<std::int64_t> numbers{-1, 0, std::int64_t(1) << 60};
    const std::vector<double> reals{0.1, -1e300, 5e-324};
    const std::vector<std::string> texts{"a,b", "{\"}", "", "\xc3\xa4"};
    const std::string bytes("\0\xff\\x'", 5);
    const auto rows = good(db.c().exec_binary(
        "select $1::bigint[], $2::float8[], $3::bytea, $4::float8, $5::text, array_length($6::text[], 1), "
        "($6::text[])[2], $7::bigint is null",
        {db::Param::array(numbers), db::Param::array(reals), db::Param::bytes(bytes), 0.1, "it's",
         db::Param::array(texts), std::nullopt}));
    CHECK(rows.integers(0, 0) == numbers);
    CHECK(rows.reals(0, 1) == reals);
    CHECK(rows.bytes(0, 2) == bytes);
    CHECK(rows.real(0, 3) == 0.1);
    CHECK(rows.text(0, 4) == "it's");
    CHECK(rows.integer(0, 5) == 4);
    CHECK(rows.text(0, 6) == "{\"}");
    CHECK(rows.boolean(0, 7));
    CHECK(good(db.c().exec("select $1::bytea", {db::Param::bytes(bytes)})).bytes(0, 0) == bytes);
}

TEST_CASE("NUL characters, which PostgreSQL can't hold, become replacement characters") {
    Scratch db;
    const Json json{{"message", std::string("a\0b", 3)}, {"path", "C:\\u0000"}};
    const auto rows = good(db.c().exec("select $1::text, $2::jsonb", {std::string("x\0y", 3), json}));
    CHECK(rows.text(0, 0) == "x\xef\xbf\xbdy");
    CHECK(rows.json(0, 1)["message"] == "a\xef\xbf\xbd"
                                        "b");
    CHECK(rows.json(0, 1)["path"] == "C:\\u0000");
}

TEST_CASE("errors say who must act") {
    Scratch db;
    const auto kind = [&](const char* sql) { return db.c().exec(sql).error().kind; };
    CHECK(kind("selekt") == ErrorKind::internal);
    CHECK(kind("select 'x'::int") == ErrorKind::bad_input);
    CHECK(kind("insert into machine (name) values ('UPPER')") == ErrorKind::bad_input);
    good(db.c().exec("insert into machine (name) values ('one')"));
    CHECK(kind("insert into machine (name) values ('one')") == ErrorKind::conflict);
    CHECK(db.c().last_sqlstate() == "23505");
}

TEST_CASE("a statement that takes too long is ended, and the session goes on") {
    Scratch db;
    db::ConnectionOptions options;
    options.target = db.target();
    options.statement_within = Milliseconds(200);
    const auto connection = good(db::Connection::open(options));
    const auto slow = connection->exec("select pg_sleep(20)");
    REQUIRE(!slow);
    CHECK(slow.error().kind == ErrorKind::timed_out);
    CHECK(good(connection->exec("select 1")).integer(0, 0) == 1);
}

TEST_CASE("a job's deadline holds even where the statement may take longer") {
    Scratch db;
    db::Pool pool(db.pool_options());
    const auto before = std::chrono::steady_clock::now();
    const auto out =
        pool.run(Deadline::in(Milliseconds(200)), [](db::Connection& c) { return c.exec("select pg_sleep(20)"); });
    REQUIRE(!out);
    CHECK(out.error().kind == ErrorKind::unavailable);
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(5));
    CHECK(pool.run([](db::Connection& c) { return c.exec("select 1"); })); // the slot is free again
}

TEST_CASE("a server that accepts and says nothing is given up on at the deadline") {
    const std::string folder = "/tmp/perfrig-mute-" + std::to_string(::getpid());
    REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
    const std::string path = folder + "/.s.PGSQL.5432";
    const int mute = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(mute, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(mute, 4) == 0);
    db::ConnectionOptions options;
    options.target = "host=" + folder + " port=5432 dbname=x user=x";
    options.connect_within = Milliseconds(200);
    const auto out = db::Connection::open(options);
    CHECK(!out);
    CHECK(out.error().kind == ErrorKind::unavailable);
    ::close(mute);
    ::unlink(path.c_str());
    ::rmdir(folder.c_str());
}

TEST_CASE("a server that is not there is unavailable, a senseless target bad input") {
    db::PoolOptions options;
    options.connection.target = "host=/nonexistent dbname=x";
    db::Pool pool(options);
    CHECK(pool.run([](db::Connection& c) { return c.exec("select 1"); }).error().kind == ErrorKind::unavailable);
    options.connection.target = "no such word = 1";
    db::Pool senseless(options);
    CHECK(senseless.run([](db::Connection& c) { return c.exec("select 1"); }).error().kind == ErrorKind::bad_input);
}

TEST_CASE("the pool replaces connections that the server closed") {
    Scratch db;
    db::Pool pool(db.pool_options(2));
    const auto pid = [](db::Connection& c) -> Result<int> { return c.process_id(); };
    const int first = good(pool.run(pid));
    good(db.c().exec("select pg_terminate_backend($1)", {first}));
    while (count(db.c(), "select count(*) from pg_stat_activity where pid = " + std::to_string(first)) > 0) {
    }
    CHECK(good(pool.run(pid)) != first);
}

TEST_CASE("a job waits for a connection no longer than its deadline") {
    Scratch db;
    db::Pool pool(db.pool_options(1));
    std::optional<ErrorKind> kind;
    good(pool.run([&](db::Connection&) -> Result<int> {
        const auto none = pool.run(Deadline::in(Milliseconds(50)), [](db::Connection&) -> Result<int> { return 1; });
        if (!none) kind = none.error().kind;
        return 0;
    }));
    CHECK(kind == ErrorKind::unavailable);
}

TEST_CASE("a transaction that isn't committed leaves nothing, nor does a savepoint in one that is") {
    Scratch db;
    const auto insert = [&](const char* name) {
        good(db.c().exec("insert into experiment (name) values ($1)", {name}));
    };
    {
        auto outer = good(db::Transaction::begin(db.c()));
        insert("lost");
    }
    {
        auto outer = good(db::Transaction::begin(db.c()));
        insert("kept");
        {
            auto inner = good(db::Transaction::begin(db.c()));
            insert("rolled back");
            CHECK(!db.c().exec("select 1/0"));
        }
        {
            auto inner = good(db::Transaction::begin(db.c()));
            insert("kept too");
            good(inner.commit());
        }
        good(outer.commit());
    }
    CHECK(db.c().depth() == 0);
    CHECK(count(db.c(), "select count(*) from experiment where name like 'kept%'") == 2);
    CHECK(count(db.c(), "select count(*) from experiment") == 2);
}

TEST_CASE("a commit behind a failed statement is an error, not a silent rollback") {
    Scratch db;
    auto transaction = good(db::Transaction::begin(db.c()));
    CHECK(!db.c().exec("select 1/0"));
    CHECK(!transaction.commit());
}

TEST_CASE("a deadlock is tried again") {
    Scratch db;
    good(db.c().exec("insert into experiment (name) values ('a'), ('b')"));
    db::Pool pool(db.pool_options(2));
    std::atomic<int> holding = 0, calls = 0;
    const auto both = [&](const char* first, const char* second) {
        return pool.run_in_transaction([&, tried = false](db::Connection& c) mutable -> Result<void> {
            ++calls;
            PERFRIG_CHECK(c.exec("select from experiment where name = $1 for update", {first}));
            if (!std::exchange(tried, true)) {
                ++holding;
                while (holding < 2) std::this_thread::yield();
            }
            PERFRIG_CHECK(c.exec("select from experiment where name = $1 for update", {second}));
            return {};
        });
    };
    std::optional<Result<void>> other;
    std::thread thread([&] { other = both("b", "a"); });
    const auto mine = both("a", "b");
    thread.join();
    CHECK(mine);
    CHECK(*other);
    CHECK(calls == 3);
}

TEST_CASE("a connection string by which no server could ever be reached is bad input; a server that is away is not") {
    const auto kind = [](const std::string& target) {
        db::ConnectionOptions options;
        options.target = target;
        options.connect_within = Milliseconds(1'000);
        return db::Connection::open(options).error().kind;
    };
    for (const char* bad :
         {"nonsense", "dbnam=x", "host=127.0.0.1 port=99999", "host=/tmp port=many", "postgresql://127.0.0.1:x/y",
          "host=/tmp sslmode=perhaps", "host=/tmp target_session_attrs=best"})
        CHECK_MESSAGE(kind(bad) == ErrorKind::bad_input, bad);
    for (const char* away : {"host=/nowhere dbname=x", "host=127.0.0.1 port=1 dbname=x", "host=no.such.host.invalid"})
        CHECK_MESSAGE(kind(away) == ErrorKind::unavailable, away);
}
