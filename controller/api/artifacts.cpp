#include "controller/db/artifacts.hpp"

#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/db/machines.hpp"
#include "controller/db/runs.hpp"

namespace perfrig::api {

namespace {

// One answer is held in memory as a whole.
constexpr std::int64_t most_bytes_at_once = 256LL << 20;

} // namespace

Result<HttpResponse> run_artifacts(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto id, path_id(request, "run"));
    PERFRIG_CHECK(db::runs::get(c, id));
    PERFRIG_TRY(const auto artifacts, db::artifacts::of_run(c, id));
    PERFRIG_TRY(const auto names, db::machines::names(c));
    Json items = Json::array();
    for (const auto& artifact : artifacts) items.push_back(to_json(artifact, names));
    return json_answer({{"items", items}});
}

Result<HttpResponse> artifact_bytes(db::Connection& c, const Request& request) {
    PERFRIG_CHECK(only_query(request, {"offset", "length"}));
    PERFRIG_TRY(const auto id, path_id(request, "artifact"));
    PERFRIG_TRY(const auto artifact, db::artifacts::find_by_id(c, id));
    if (!artifact.complete)
        return fail(ErrorKind::not_found, "read the artifact", artifact.name,
                    "only " + std::to_string(artifact.stored_bytes) + " of its " + std::to_string(artifact.size_bytes) +
                        " bytes have arrived",
                    "ask again when its run has ended");
    PERFRIG_TRY(const auto offset, query_integer(request, "offset", 0, 0, INT64_MAX));
    PERFRIG_TRY(const auto length, query_integer(request, "length", artifact.size_bytes, 0, INT64_MAX));
    const auto end =
        std::min(artifact.size_bytes, length > artifact.size_bytes - offset ? artifact.size_bytes : offset + length);
    if (end - offset > most_bytes_at_once)
        return problem(400, "that is more than 256 MiB: ask for parts with offset and length");
    HttpResponse response;
    response.content_type = "application/octet-stream";
    for (auto at = offset; at < end;) {
        const auto part = at / db::artifacts::most_part_bytes;
        PERFRIG_TRY(const auto bytes, db::artifacts::read_part(c, id, part));
        const auto from = at - part * db::artifacts::most_part_bytes;
        const auto take = std::min<std::int64_t>(static_cast<std::int64_t>(bytes.size()) - from, end - at);
        if (take <= 0) return fail(ErrorKind::internal, "read the artifact", artifact.name, "a part of it is missing");
        response.body.append(bytes, static_cast<std::size_t>(from), static_cast<std::size_t>(take));
        at += take;
    }
    if (offset == 0 && end == artifact.size_bytes) response.headers.set("ETag", '"' + artifact.sha256 + '"');
    response.headers.set("X-Content-Type-Options", "nosniff");
    return response;
}

} // namespace perfrig::api
