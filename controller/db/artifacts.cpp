#include "controller/db/artifacts.hpp"

#include "common/base/hash.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::db::artifacts {

namespace {

constexpr const char* select_artifact =
    "select a.id, a.run_id, a.machine_id, a.name, a.sha256, a.size, case when a.complete then a.size else "
    "coalesce((select max(p.start + length(p.bytes)) from upload_part p where p.artifact_id = a.id), 0) end, "
    "a.complete "
    "from artifact a ";

Result<std::vector<model::Artifact>> select(Connection& c, const std::string& rest, const Params& params) {
    PERFRIG_TRY(const Rows rows, c.exec((select_artifact + rest).c_str(), params));
    std::vector<model::Artifact> out;
    for (int i = 0; i < rows.size(); ++i)
        out.push_back({rows.integer(i, 0), rows.integer(i, 1), rows.integer(i, 2), std::string(rows.text(i, 3)),
                       std::string(rows.text(i, 4)), rows.integer(i, 5), rows.integer(i, 6), rows.boolean(i, 7)});
    return out;
}

Result<model::Artifact> only(Result<std::vector<model::Artifact>> found, const std::string& what) {
    if (!found) return std::move(found).error();
    if (found->empty()) return fail(ErrorKind::not_found, "find the artifact", what, "it was not offered");
    return std::move(found->front());
}

bool is_sha256(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Reads the upload in order, cuts it into blob's parts of 1 MiB and hashes it; at most 2 MiB are in memory.
Result<std::string> move_to_blob(Connection& c, const model::Artifact& artifact) {
    Sha256 sha;
    std::string carried;
    std::int64_t at = 0;
    int part = 0;
    const auto put = [&](std::string bytes) {
        return c.exec("insert into blob (sha256, part, bytes) values ($1, $2, $3) on conflict do nothing",
                      {artifact.sha256, part++, Param::bytes(std::move(bytes))});
    };
    while (at < artifact.size_bytes) {
        PERFRIG_TRY(const Rows row, c.exec_binary("select bytes from upload_part where artifact_id = $1 and start = $2",
                                                  {artifact.id, at}));
        if (row.empty()) return fail(ErrorKind::internal, "complete the artifact", artifact.name, "a part is missing");
        const std::string bytes = row.bytes(0, 0);
        sha.add(bytes);
        carried += bytes;
        at += static_cast<std::int64_t>(bytes.size());
        while (carried.size() >= most_part_bytes) {
            PERFRIG_CHECK(put(carried.substr(0, most_part_bytes)));
            carried.erase(0, most_part_bytes);
        }
    }
    if (!carried.empty()) PERFRIG_CHECK(put(std::move(carried)));
    return sha.hex();
}

Result<void> complete(Connection& c, const model::Artifact& artifact) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const std::string sha, move_to_blob(c, artifact));
    if (sha != artifact.sha256)
        return fail(ErrorKind::bad_input, "complete the artifact", artifact.name,
                    "its bytes have the SHA-256 " + sha + ", not the offered " + artifact.sha256,
                    "send it again from offset 0");
    PERFRIG_CHECK(c.exec("update artifact set complete = true where id = $1", {artifact.id}));
    PERFRIG_CHECK(c.exec("delete from upload_part where artifact_id = $1", {artifact.id}));
    return transaction.commit();
}

} // namespace

Result<model::Artifact> offer(Connection& c, model::Id run, model::Id machine, std::string_view name,
                              std::string_view sha256, std::int64_t size_bytes) {
    if (name.empty() || name.size() > 255 || name.front() == '/' || name.find("..") != std::string_view::npos ||
        !is_sha256(sha256) || size_bytes < 0)
        return fail(
            ErrorKind::bad_input, "offer the artifact", std::string(name),
            "it needs a relative name of at most 255 characters without '..', a SHA-256 in lower-case hex and a "
            "size that is not negative");
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(
        c.exec("insert into artifact (run_id, machine_id, name, sha256, size, complete) select $1, $2, $3, $4, "
               "$5::bigint, $5::bigint = 0 or exists (select from artifact where sha256 = $4 "
               "and size = $5::bigint and complete) on conflict (run_id, machine_id, name) do nothing",
               {run, machine, name, sha256, size_bytes}));
    PERFRIG_TRY(model::Artifact out, find(c, run, machine, name));
    if (out.sha256 != sha256 || out.size_bytes != size_bytes)
        return fail(ErrorKind::conflict, "offer the artifact", std::string(name),
                    "another content was offered under this name", "give it a name of its own");
    PERFRIG_CHECK(transaction.commit());
    return out;
}

Result<model::Artifact> find(Connection& c, model::Id run, model::Id machine, std::string_view name) {
    return only(select(c, "where a.run_id = $1 and a.machine_id = $2 and a.name = $3", {run, machine, name}),
                "'" + std::string(name) + "' of run " + std::to_string(run));
}

Result<model::Artifact> find_by_id(Connection& c, model::Id artifact) {
    return only(select(c, "where a.id = $1", {artifact}), std::to_string(artifact));
}

Result<std::vector<model::Artifact>> of_run(Connection& c, model::Id run) {
    return select(c, "where a.run_id = $1 order by a.name, a.machine_id", {run});
}

Result<std::int64_t> incomplete_of_block(Connection& c, model::Id block) {
    PERFRIG_TRY(const Rows rows, c.exec("select count(*) from artifact a join run r on r.id = a.run_id "
                                        "where r.block_id = $1 and not a.complete",
                                        {block}));
    return rows.integer(0, 0);
}

Result<model::Artifact> append(Connection& c, model::Id id, std::int64_t offset, std::string_view bytes) {
    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_CHECK(c.exec("select from artifact where id = $1 for update", {id}));
    PERFRIG_TRY(model::Artifact artifact, find_by_id(c, id));
    const auto size = static_cast<std::int64_t>(bytes.size());
    const std::string where = "'" + artifact.name + "' at byte " + std::to_string(offset);
    if (size > most_part_bytes)
        return fail(ErrorKind::bad_input, "store a part of the artifact", where, "it is larger than 1 MiB");
    if (offset < 0 || size > artifact.size_bytes - offset)
        return fail(ErrorKind::bad_input, "store a part of the artifact", where,
                    "it reaches past the offered size of " + std::to_string(artifact.size_bytes) + " bytes");
    if (offset > artifact.stored_bytes)
        return fail(ErrorKind::conflict, "store a part of the artifact", where,
                    "only " + std::to_string(artifact.stored_bytes) + " bytes are stored",
                    "go on from offset " + std::to_string(artifact.stored_bytes));
    const std::int64_t known = std::min(size, artifact.stored_bytes - offset);
    if (known == size) return artifact;
    PERFRIG_CHECK(c.exec("insert into upload_part (artifact_id, start, bytes) values ($1, $2, $3)",
                         {id, artifact.stored_bytes, Param::bytes(std::string(bytes.substr(std::size_t(known))))}));
    if (offset + size == artifact.size_bytes) {
        auto done = complete(c, artifact);
        if (!done && done.error().kind == ErrorKind::bad_input) { // the wrong bytes must not stay
            PERFRIG_CHECK(c.exec("delete from upload_part where artifact_id = $1", {id}));
            PERFRIG_CHECK(transaction.commit());
        }
        if (!done) return std::move(done).error();
    }
    PERFRIG_TRY(artifact, find_by_id(c, id));
    PERFRIG_CHECK(transaction.commit());
    return artifact;
}

Result<std::string> read_part(Connection& c, model::Id id, std::int64_t part) {
    PERFRIG_TRY(const model::Artifact artifact, find_by_id(c, id));
    if (!artifact.complete)
        return fail(ErrorKind::not_found, "read the artifact", artifact.name, "it has not arrived in full",
                    "try again when its run has ended");
    PERFRIG_TRY(const Rows row,
                c.exec_binary("select bytes from blob where sha256 = $1 and part = $2", {artifact.sha256, part}));
    return row.empty() ? std::string() : row.bytes(0, 0);
}

} // namespace perfrig::db::artifacts
