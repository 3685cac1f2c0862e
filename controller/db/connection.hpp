// One session with PostgreSQL. Calls block, but never for ever: connecting, every statement and every wait for the
// network has a deadline kept on this side (the server's own statement_timeout is set a little below it). No exception
// for what the server refuses: an Error whose kind says who must act, from the SQLSTATE:
//
//   unavailable  08* 57P* 53* 58* 25006, or no answer at all: the server is gone, full, starting or stopping; may pass
//   conflict     40001 40P01 (try again), 23505 (exists already), 55P03 (locked)
//   bad_input    22* 23* (but 23505): values that the tables refuse
//   timed_out    57014: statement_timeout
//   internal     anything else: a statement that is wrong, a bug
//
// A connection is used by one thread at a time.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "controller/db/params.hpp"
#include "controller/db/rows.hpp"

#include <memory>
#include <string>

struct pg_conn;

namespace perfrig::db {

struct ConnectionOptions {
    std::string target; // keyword/value or URI form of libpq: "host=/run/x dbname=perfrig"
    Milliseconds connect_within{5'000};
    Milliseconds statement_within{30'000};
    Milliseconds tcp_user_timeout{10'000}; // unacknowledged bytes for this long: the connection is dead (Linux, TCP)
    std::string application_name = "perfrig-controller";
};

constexpr int oldest_server_version = 150000; // as server_version_num counts: 15

class Connection {
  public:
    // bad_input where the target can't be parsed or the server is older than PostgreSQL 15.
    static Result<std::unique_ptr<Connection>> open(const ConnectionOptions& options);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // One statement with parameters.
    Result<Rows> exec(const char* sql, const Params& params = {});
    // The same with results in binary format: for bytes and arrays, where the text form would cost.
    Result<Rows> exec_binary(const char* sql, const Params& params = {});
    // Several statements separated by ';', no parameters (migrations).
    Result<void> script(const std::string& sql);

    // Statements wait no longer than this; Pool sets it per job. The options' statement_within holds besides.
    void set_deadline(Deadline deadline) { deadline_ = deadline; }
    Deadline deadline() const { return deadline_; }

    const std::string& last_sqlstate() const { return sqlstate_; } // "" where the last call went well or got no answer
    bool broken() const;      // of no use any more: the session ended or a deadline was missed
    bool still_there() const; // looks at the socket without waiting: false when the server closed it
    int server_version() const;
    int process_id() const;              // of the server's backend
    int depth() const { return depth_; } // of nested transactions

  private:
    friend class Transaction;
    Connection(pg_conn* connection, const ConnectionOptions& options);
    Result<Rows> run(const char* sql, const Params& params, bool binary, bool simple);
    Result<Rows> await_result(const char* sql);
    Error error_of(const pg_result* result, const char* sql);

    pg_conn* connection_;
    Milliseconds statement_within_;
    Deadline deadline_;
    std::string sqlstate_;
    bool broken_ = false;
    int depth_ = 0;
};

// True for errors after which the same transaction may succeed if it is tried again from its start.
bool worth_retrying(const Connection& connection);

} // namespace perfrig::db
