// Raw bytes that runs leave. They are offered with name, size and hash, come in parts in order, and count as complete
// when their hash is right; equal contents are kept once, in parts of 1 MiB. An upload can stop and go on at any time.
#pragma once

#include "controller/db/connection.hpp"
#include "controller/model/run.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace perfrig::db::artifacts {

constexpr std::int64_t most_part_bytes = 1 << 20;

// The same offer again changes nothing; another size or hash under the name is a conflict. Complete at once where the
// content is known already or empty.
Result<model::Artifact> offer(Connection& c, model::Id run, model::Id machine, std::string_view name,
                              std::string_view sha256, std::int64_t size_bytes);
Result<model::Artifact> find(Connection& c, model::Id run, model::Id machine, std::string_view name); // not_found
Result<model::Artifact> find_by_id(Connection& c, model::Id artifact);                                // not_found
Result<std::vector<model::Artifact>> of_run(Connection& c, model::Id run);
// How many artifacts of a block's runs were offered and have not arrived whole.
Result<std::int64_t> incomplete_of_block(Connection& c, model::Id block);

// Appends bytes at `offset` (which must be stored_bytes; bytes that are stored already are ignored; a gap is a conflict
// whose text names the offset to go on from). At most 1 MiB. With the last byte the hash is checked: a wrong one drops
// what was stored (bad_input) and the upload begins again at 0.
Result<model::Artifact> append(Connection& c, model::Id artifact, std::int64_t offset, std::string_view bytes);

// Part `part` (0 ...) of a complete artifact, 1 MiB each but the last; empty past the end. not_found: not complete.
Result<std::string> read_part(Connection& c, model::Id artifact, std::int64_t part);

} // namespace perfrig::db::artifacts
