// Storing a new submission: thousands of cells and runs in a handful of statements.
#include "controller/db/events.hpp"
#include "controller/db/partitions.hpp"
#include "controller/db/sql.hpp"
#include "controller/db/submissions.hpp"
#include "controller/db/transaction.hpp"

#include <algorithm>

namespace perfrig::db::submissions {

namespace {

constexpr std::size_t runs_a_statement = 500; // definitions are some kB each

Result<std::vector<model::Id>> insert_cells(Connection& c, model::Id submission,
                                            const std::vector<model::NewCell>& cells) {
    std::vector<std::string> keys, levels;
    for (const model::NewCell& cell : cells) {
        keys.push_back(cell.cell_key);
        levels.push_back(canonical_json(to_json(cell.levels)));
    }
    PERFRIG_TRY(const Rows made,
                c.exec("insert into cell (submission_id, ordinal, cell_key, levels) "
                       "select $1, n, key, levels::jsonb from unnest($2::text[], $3::text[]) with ordinality "
                       "as given(key, levels, n) order by n returning id, ordinal",
                       {submission, Param::array(keys), Param::array(levels)}));
    std::vector<model::Id> ids(cells.size());
    for (int i = 0; i < made.size(); ++i) ids.at(static_cast<std::size_t>(made.integer(i, 1)) - 1) = made.integer(i, 0);
    return ids;
}

Result<std::vector<model::Id>> insert_blocks(Connection& c, model::Id submission, const std::vector<Json>& blocks) {
    std::vector<std::string> states;
    for (const Json& boot_state : blocks) states.push_back(canonical_json(boot_state));
    PERFRIG_TRY(const Rows made,
                c.exec("insert into block (submission_id, ordinal, boot_state) select $1, n, state::jsonb "
                       "from unnest($2::text[]) with ordinality as given(state, n) order by n returning id, ordinal",
                       {submission, Param::array(states)}));
    std::vector<model::Id> ids(blocks.size());
    for (int i = 0; i < made.size(); ++i) ids.at(static_cast<std::size_t>(made.integer(i, 1)) - 1) = made.integer(i, 0);
    return ids;
}

Result<void> insert_runs(Connection& c, model::Id submission, std::span<const model::NewRun> runs,
                         const std::vector<model::Id>& cells, const std::vector<model::Id>& blocks,
                         std::span<model::Id> ids) {
    std::vector<std::int64_t> block_ids, cell_ids;
    std::vector<int> positions, replicates;
    std::vector<std::string> resolved, hashes;
    std::map<std::pair<model::Id, int>, std::size_t> place;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        block_ids.push_back(blocks.at(runs[i].block));
        cell_ids.push_back(cells.at(runs[i].cell));
        positions.push_back(runs[i].position);
        replicates.push_back(runs[i].replicate);
        resolved.push_back(canonical_json(runs[i].resolved));
        hashes.push_back(runs[i].resolved_sha);
        place[{cell_ids.back(), replicates.back()}] = i;
    }
    PERFRIG_TRY(
        const Rows made,
        c.exec("insert into run (submission_id, block_id, cell_id, position, replicate, resolved, resolved_sha) "
               "select $1, block, cell, position, replicate, resolved::jsonb, sha from unnest($2::bigint[], "
               "$3::bigint[], $4::int[], $5::int[], $6::text[], $7::text[]) with ordinality "
               "as given(block, cell, position, replicate, resolved, sha, n) order by n "
               "returning id, cell_id, replicate",
               {submission, Param::array(block_ids), Param::array(cell_ids), Param::array(positions),
                Param::array(replicates), Param::array(resolved), Param::array(hashes)}));
    for (int i = 0; i < made.size(); ++i)
        ids[place.at({made.integer(i, 1), static_cast<int>(made.integer(i, 2))})] = made.integer(i, 0);
    return {};
}

Result<Created> known_already(Connection& c, const model::NewSubmission& s, const std::string& sha) {
    PERFRIG_TRY(const Rows known, c.exec("select id, idempotency_sha from submission "
                                         "where idempotency_token = $1 and idempotency_key = $2",
                                         {s.idempotency_token, s.idempotency_key}));
    if (known.empty() || known.text(0, 1) != sha)
        return fail(ErrorKind::bad_input, "queue the submission", s.experiment,
                    "the idempotency key '" + s.idempotency_key + "' was used for another request",
                    "use a new key, or send the same request as before");
    Created out;
    out.id = known.integer(0, 0);
    out.existed = true;
    return out;
}

} // namespace

Result<Created> create(Connection& c, const model::NewSubmission& s) {
    for (const model::NewRun& run : s.runs)
        if (run.cell >= s.cells.size() || run.block >= s.blocks.size())
            return fail(ErrorKind::internal, "store the submission", s.experiment,
                        "a run names no cell or block of it");
    const bool keyed = !s.idempotency_key.empty();
    const std::string sha = s.request_sha.empty() ? s.definition_sha : s.request_sha;
    const auto if_keyed = [&](const std::string& text) { return keyed ? Param(text) : Param(std::nullopt); };

    PERFRIG_TRY(Transaction transaction, Transaction::begin(c));
    PERFRIG_TRY(const Rows experiment, c.exec("insert into experiment (name) values ($1) on conflict (name) "
                                              "do update set name = excluded.name returning id",
                                              {s.experiment}));
    PERFRIG_TRY(
        const Rows made,
        c.exec("insert into submission (experiment_id, source, definition, definition_sha, plan, "
               "idempotency_token, idempotency_key, idempotency_sha, priority, seed, machine_name, machine_labels) "
               "values ($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9, $10, $11, $12::jsonb) "
               "on conflict (idempotency_token, idempotency_key) do nothing returning id",
               {experiment.integer(0, 0), s.source, s.definition, s.definition_sha, s.plan,
                if_keyed(s.idempotency_token), if_keyed(s.idempotency_key), if_keyed(sha), s.priority, s.seed,
                s.machine_name, s.machine_labels}));
    if (made.empty()) return known_already(c, s, sha);

    Created out;
    out.id = made.integer(0, 0);
    PERFRIG_TRY(const auto cells, insert_cells(c, out.id, s.cells));
    PERFRIG_TRY(out.blocks, insert_blocks(c, out.id, s.blocks));
    out.runs.resize(s.runs.size());
    for (std::size_t at = 0; at < s.runs.size(); at += runs_a_statement) {
        const std::size_t n = std::min(runs_a_statement, s.runs.size() - at);
        PERFRIG_CHECK(insert_runs(c, out.id, std::span(s.runs).subspan(at, n), cells, out.blocks,
                                  std::span(out.runs).subspan(at, n)));
    }
    if (!out.runs.empty()) {
        const auto [first, last] = std::ranges::minmax(out.runs);
        PERFRIG_CHECK(ensure_partitions(c, first, last));
    }
    PERFRIG_CHECK(events::add(c, s.source, "submission/" + std::to_string(out.id), "queued",
                              {{"experiment", s.experiment}, {"runs", out.runs.size()}}));
    PERFRIG_CHECK(transaction.commit());
    return out;
}

} // namespace perfrig::db::submissions
