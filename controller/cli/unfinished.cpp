#include "controller/cli/unfinished.hpp"

#include "common/base/file_tree.hpp"
#include "controller/cli/client.hpp"

#include <algorithm>
#include <vector>

namespace perfrig::cli {

namespace {

Result<std::vector<std::int64_t>> unfinished(const std::string& folder) {
    const std::string left = folder + "/client.json";
    PERFRIG_TRY(const std::string text, read_file(left));
    PERFRIG_TRY(const Json json, parse_json(text, left));
    JsonReader in(json, left);
    const std::string url = in.string("url"), token_file = in.string("token_file");
    PERFRIG_CHECK(in.finish());
    PERFRIG_TRY(Connection connection, find_connection(url, token_file, folder));
    const Client client(std::move(connection));
    std::vector<std::int64_t> ids;
    for (const char* state : {"running", "queued"}) {
        PERFRIG_TRY(const Json page,
                    client.get(std::string("/api/v1/submissions?limit=20&state=") + state, Milliseconds(1'000)));
        for (const Json& one : page.value("items", Json::array())) ids.push_back(one.value("id", std::int64_t{0}));
    }
    std::ranges::sort(ids);
    return ids;
}

} // namespace

std::string unfinished_text(const std::string& folder) {
    const auto ids = unfinished(folder);
    if (!ids || ids->empty()) return ""; // a controller that is away or hangs is ended all the same
    std::string list;
    for (const std::int64_t id : *ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
    if (ids->size() == 1)
        return "submission " + list + " is unfinished; it goes on at the next up (perfrig cancel " + list +
               " ends it then)";
    return "submissions " + list + " are unfinished; they go on at the next up (perfrig cancel NUMBER ends one then)";
}

} // namespace perfrig::cli
