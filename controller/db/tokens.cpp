#include "controller/db/tokens.hpp"

#include "controller/db/sql.hpp"

namespace perfrig::db::tokens {

namespace {
const std::string& select_token() {
    static const std::string sql = "select t.hash, t.kind, t.label, t.machine_id, coalesce(m.name, ''), " +
                                   utc_ns("t.created_at") + ", " + utc_ns("t.revoked_at") +
                                   " from token t left join machine m on m.id = t.machine_id ";
    return sql;
}

model::Token token_from(const Rows& rows, int i) {
    model::Token out;
    out.hash = rows.text(i, 0);
    out.kind = word(model::parse_token_kind(rows.text(i, 1)));
    out.label = rows.text(i, 2);
    out.machine_id = rows.id(i, 3);
    out.machine_name = rows.text(i, 4);
    out.created_utc_ns = rows.integer(i, 5);
    out.revoked_utc_ns = rows.maybe_integer(i, 6);
    return out;
}
} // namespace

Result<void> create(Connection& c, std::string_view hash, model::TokenKind kind, std::string_view label,
                    model::Id machine) {
    PERFRIG_TRY(const Rows made,
                c.exec("insert into token (hash, kind, label, machine_id) values ($1, $2, $3, $4) "
                       "on conflict (hash) do update set hash = excluded.hash where token.kind = excluded.kind and "
                       "token.machine_id is not distinct from excluded.machine_id and token.revoked_at is null",
                       {hash, to_string(kind), label, Param::id_or_null(machine)}));
    if (made.affected() == 0)
        return fail(ErrorKind::conflict, "store a token", std::string(label),
                    "it is known already, with another meaning or as revoked", "make a new one");
    return {};
}

Result<std::optional<model::Token>> find(Connection& c, std::string_view hash) {
    static const std::string sql = select_token() + "where t.hash = $1 and t.revoked_at is null";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str(), {hash}));
    if (rows.empty()) return std::optional<model::Token>();
    return std::optional(token_from(rows, 0));
}

Result<void> revoke(Connection& c, std::string_view hash) {
    PERFRIG_TRY(const Rows done,
                c.exec("update token set revoked_at = coalesce(revoked_at, now()) where hash = $1", {hash}));
    if (done.affected() == 0) return fail(ErrorKind::not_found, "revoke a token", "", "there is none with this hash");
    return {};
}

Result<void> revoke_of_machine(Connection& c, model::Id machine) {
    PERFRIG_CHECK(
        c.exec("update token set revoked_at = now() where machine_id = $1 and revoked_at is null", {machine}));
    return {};
}

namespace {
std::vector<std::string> first_column(const Rows& rows) {
    std::vector<std::string> out;
    for (int i = 0; i < rows.size(); ++i) out.emplace_back(rows.text(i, 0));
    return out;
}
} // namespace

Result<std::vector<std::string>> scrape_hashes(Connection& c) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select hash from token where kind = 'scrape' and revoked_at is null order by hash"));
    return first_column(rows);
}

Result<std::vector<std::string>> hashes_of_machine(Connection& c, model::Id machine) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select hash from token where machine_id = $1 and revoked_at is null", {machine}));
    return first_column(rows);
}

Result<std::vector<model::Token>> list(Connection& c) {
    static const std::string sql = select_token() + "order by t.created_at, t.hash";
    PERFRIG_TRY(const Rows rows, c.exec(sql.c_str()));
    std::vector<model::Token> out;
    for (int i = 0; i < rows.size(); ++i) out.push_back(token_from(rows, i));
    return out;
}

Result<bool> any_of_kind(Connection& c, model::TokenKind kind) {
    PERFRIG_TRY(const Rows rows,
                c.exec("select exists (select from token where kind = $1 and revoked_at is null)", {to_string(kind)}));
    return rows.boolean(0, 0);
}

} // namespace perfrig::db::tokens
