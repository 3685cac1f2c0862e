#include "controller/db/connection.hpp"

#include "common/base/log.hpp"

#include <cerrno>
#include <charconv>
#include <libpq-fe.h>
#include <poll.h>

namespace perfrig::db {

namespace {

using ResultHandle = std::unique_ptr<pg_result, void (*)(pg_result*)>;

// poll() takes an int of milliseconds; a deadline far away is waited for in pieces.
int poll_time(Deadline deadline) {
    return static_cast<int>(std::min<std::int64_t>(deadline.left().count() + 1, 60'000));
}

enum class Waited { ready, timed_out };
Waited wait_for(int socket, short events, Deadline deadline) {
    while (!deadline.passed()) {
        pollfd wanted{socket, events, 0};
        const int ready = ::poll(&wanted, 1, poll_time(deadline));
        if (ready > 0) return Waited::ready;
        if (ready < 0 && errno != EINTR) return Waited::ready; // libpq will find out what is wrong with it
    }
    return Waited::timed_out;
}

ErrorKind kind_of(std::string_view sqlstate) {
    const std::string_view cls = sqlstate.substr(0, 2);
    if (sqlstate.empty() || cls == "08" || cls == "53" || cls == "58" || sqlstate.starts_with("57P") ||
        sqlstate == "25006" || sqlstate == "25P03")
        return ErrorKind::unavailable;
    if (sqlstate == "57014") return ErrorKind::timed_out;
    if (sqlstate == "40001" || sqlstate == "40P01" || sqlstate == "23505" || sqlstate == "55P03")
        return ErrorKind::conflict;
    if (cls == "22" || cls == "23") return ErrorKind::bad_input;
    return ErrorKind::internal;
}

std::string trimmed(const char* message) {
    std::string text = message ? message : "";
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

// Enough of a statement to find it: its first words on one line.
std::string shown(std::string_view sql) {
    std::string out;
    for (const char c : sql.substr(0, 160)) {
        const bool space = c == '\n' || c == ' ';
        if (space && (out.empty() || out.back() == ' ')) continue;
        out.push_back(space ? ' ' : c);
        if (out.size() == 72) break;
    }
    return "'" + out + "...'";
}

Error unreachable(std::string why) {
    return fail(ErrorKind::unavailable, "reach PostgreSQL", "", std::move(why),
                "check that it runs and that the connection string names it");
}

Error bad_target(std::string why) {
    return fail(ErrorKind::bad_input, "use the connection string of PostgreSQL", "", std::move(why),
                "write it as host=... dbname=... user=... or as postgresql://...");
}

// libpq looks at a port only when it connects, and then as if its server were away. Several hosts may have a list.
bool are_ports(std::string_view list) {
    while (true) {
        const auto one = list.substr(0, list.find(','));
        int port = 0;
        const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), port);
        const bool good = error == std::errc() && end == one.data() + one.size() && port > 0 && port <= 65535;
        if (!good && !one.empty()) return false;
        if (one.size() == list.size()) return true;
        list.remove_prefix(one.size() + 1);
    }
}

Result<void> check_target(const std::string& target) {
    char* raw_why = nullptr;
    const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
        PQconninfoParse(target.c_str(), &raw_why), PQconninfoFree);
    const std::unique_ptr<char, void (*)(void*)> why(raw_why, PQfreemem);
    if (!parsed) return bad_target(trimmed(why.get()));
    for (const auto* option = parsed.get(); option->keyword; ++option)
        if (std::string_view(option->keyword) == "port" && option->val && !are_ports(option->val))
            return bad_target("'" + std::string(option->val) + "' is no port: it must be a number from 1 to 65535");
    return {};
}

void debug_notice(void*, const char* message) { log::debug("PostgreSQL: " + trimmed(message)); }

} // namespace

Connection::Connection(pg_conn* connection, const ConnectionOptions& options)
    : connection_(connection), statement_within_(options.statement_within),
      deadline_(Deadline::in(Milliseconds(std::chrono::hours(24 * 365)))) {}

Connection::~Connection() { PQfinish(connection_); }

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionOptions& options) {
    const Deadline deadline = Deadline::in(options.connect_within);
    PERFRIG_CHECK(check_target(options.target));
    const std::string user_timeout = std::to_string(options.tcp_user_timeout.count());
    const char* keywords[] = {"dbname",
                              "application_name",
                              "tcp_user_timeout",
                              "keepalives_idle",
                              "client_encoding",
                              "keepalives_count",
                              "keepalives_interval",
                              "connect_timeout",
                              nullptr};
    const char* values[] = {options.target.c_str(),
                            options.application_name.c_str(),
                            user_timeout.c_str(),
                            "10",
                            "UTF8",
                            "3",
                            "5",
                            "2", // for the ping alone: the wait below has its own deadline
                            nullptr};
    pg_conn* raw = PQconnectStartParams(keywords, values, 1);
    if (!raw) return fail(ErrorKind::unavailable, "connect to PostgreSQL", "", "out of memory");
    std::unique_ptr<Connection> connection(new Connection(raw, options));
    if (PQstatus(raw) == CONNECTION_BAD) {
        // It parses, but no server could ever be reached by it (an sslmode that there is not): only a ping tells that
        // apart from a server that is away. Nothing is sent in that case.
        if (PQpingParams(keywords, values, 1) == PQPING_NO_ATTEMPT) return bad_target(trimmed(PQerrorMessage(raw)));
        return unreachable(trimmed(PQerrorMessage(raw)));
    }
    for (PostgresPollingStatusType state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK;
         state = PQconnectPoll(raw)) {
        if (state == PGRES_POLLING_FAILED) return unreachable(trimmed(PQerrorMessage(raw)));
        const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (wait_for(PQsocket(raw), events, deadline) == Waited::timed_out)
            return unreachable("no connection within " + std::to_string(options.connect_within.count()) + " ms");
    }
    PQsetnonblocking(raw, 1);
    PQsetNoticeProcessor(raw, debug_notice, nullptr);
    if (PQserverVersion(raw) < oldest_server_version)
        return fail(ErrorKind::bad_input, "use PostgreSQL", std::to_string(PQserverVersion(raw) / 10000),
                    "it is older than 15", "upgrade the server to PostgreSQL 15 or newer");
    // A backend whose client went away in a statement notices within two seconds, one left in a transaction within a
    // minute: neither keeps its locks.
    connection->set_deadline(deadline);
    PERFRIG_CHECK(connection->exec("select set_config('statement_timeout', $1, false), "
                                   "set_config('idle_in_transaction_session_timeout', '60s', false), "
                                   "set_config('client_connection_check_interval', '2s', false), "
                                   "set_config('timezone', 'UTC', false), set_config('datestyle', 'ISO', false)",
                                   {std::to_string(options.statement_within.count())}));
    connection->set_deadline(Deadline::in(Milliseconds(std::chrono::hours(24 * 365))));
    return connection;
}

Result<Rows> Connection::exec(const char* sql, const Params& params) { return run(sql, params, false, false); }
Result<Rows> Connection::exec_binary(const char* sql, const Params& params) { return run(sql, params, true, false); }

Result<void> Connection::script(const std::string& sql) {
    PERFRIG_CHECK(run(sql.c_str(), {}, false, true));
    return {};
}

Result<Rows> Connection::run(const char* sql, const Params& params, bool binary, bool simple) {
    sqlstate_.clear();
    if (broken()) return unreachable("the connection was lost");
    int sent = 0;
    if (simple) {
        sent = PQsendQuery(connection_, sql);
    } else {
        std::vector<Oid> types;
        std::vector<const char*> values;
        std::vector<int> lengths, formats;
        for (const Param& param : params) {
            types.push_back(param.type);
            values.push_back(param.null ? nullptr : param.value.c_str());
            lengths.push_back(static_cast<int>(param.value.size()));
            formats.push_back(param.binary ? 1 : 0);
        }
        sent = PQsendQueryParams(connection_, sql, static_cast<int>(params.size()), types.data(), values.data(),
                                 lengths.data(), formats.data(), binary ? 1 : 0);
    }
    if (sent == 0) {
        broken_ = true;
        return unreachable(trimmed(PQerrorMessage(connection_)));
    }
    return await_result(sql);
}

// Sends what is buffered and reads until the statement's last result; the first error wins.
Result<Rows> Connection::await_result(const char* sql) {
    // The server ends the statement itself a little earlier and says so; this is for when it can't.
    const Deadline deadline = deadline_.earlier_of(Deadline::in(statement_within_ + Milliseconds(500)));
    const auto lost = [&](std::string why) {
        broken_ = true;
        return unreachable(std::move(why));
    };
    Rows rows;
    std::optional<Error> error;
    while (true) {
        const int unsent = PQflush(connection_);
        if (unsent < 0) return lost(trimmed(PQerrorMessage(connection_)));
        if (unsent == 0 && !PQisBusy(connection_)) {
            ResultHandle result(PQgetResult(connection_), PQclear);
            if (!result) break;
            const ExecStatusType status = PQresultStatus(result.get());
            if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
                return lost("COPY is not spoken here");
            const bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY;
            if (!good && !error) error = error_of(result.get(), sql);
            if (good && !error) rows = Rows(result.release());
            continue;
        }
        const short events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
        if (wait_for(PQsocket(connection_), events, deadline) == Waited::timed_out)
            return lost("no answer in time to " + shown(sql));
        if (!PQconsumeInput(connection_)) return lost(trimmed(PQerrorMessage(connection_)));
    }
    if (error) return std::move(*error);
    return rows;
}

Error Connection::error_of(const pg_result* result, const char* sql) {
    const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    sqlstate_ = sqlstate ? sqlstate : "";
    const ErrorKind kind = kind_of(sqlstate_);
    const char* primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    std::string why = trimmed(primary ? primary : PQresultErrorMessage(result));
    if (detail) why += "; " + trimmed(detail);
    if (!sqlstate_.empty()) why += " [" + sqlstate_ + "]";
    if (kind == ErrorKind::unavailable) return unreachable(std::move(why));
    return fail(kind, "run the statement", shown(sql), std::move(why));
}

bool Connection::broken() const { return broken_ || PQstatus(connection_) != CONNECTION_OK; }

bool Connection::still_there() const {
    if (broken()) return false;
    // Nothing is asked, so whatever comes is a farewell or its end (or a notice: then a new session does no harm).
    pollfd wanted{PQsocket(connection_), POLLIN, 0};
    return ::poll(&wanted, 1, 0) == 0;
}

int Connection::server_version() const { return PQserverVersion(connection_); }
int Connection::process_id() const { return PQbackendPID(connection_); }

bool worth_retrying(const Connection& connection) {
    return !connection.broken() && (connection.last_sqlstate() == "40001" || connection.last_sqlstate() == "40P01");
}

} // namespace perfrig::db
