#include "agent/setup/join.hpp"

#include "common/base/file_tree.hpp"
#include "common/net/http_client.hpp"
#include "common/process/users.hpp"

#include <filesystem>
#include <unistd.h>

namespace perfrig {

namespace {
constexpr Milliseconds answer_time{20'000};

Result<void> give_to_user(const std::string& path, const std::string& user_name) {
    if (::geteuid() != 0 || user_name.empty()) return {};
    PERFRIG_TRY(const User user, find_user(FileTree(), user_name));
    if (::lchown(path.c_str(), user.uid, user.gid) != 0) return fail_errno(errno, "give to " + user_name, path);
    return {};
}

// A machine whose state directory is new goes on counting its starts where the controller has seen them end.
Result<void> go_on_from(const AgentConfig& config, std::int64_t epoch) {
    const std::string file = config.state_dir + "/epoch";
    if (epoch == 0 || std::filesystem::exists(file) || !std::filesystem::exists(config.state_dir)) return {};
    PERFRIG_CHECK(write_file_atomically(file, std::to_string(epoch) + "\n", 0600));
    return give_to_user(file, config.user);
}
} // namespace

Result<Joined> join(const AgentConfig& config, const std::string& join_token) {
    if (config.controller.empty())
        return fail(ErrorKind::bad_input, "join", "", "no controller is named",
                    "perfrig-agent join URL --join-token-file FILE");
    PERFRIG_TRY(const Url url, controller_url(config.controller));
    HttpCall call;
    call.method = "POST";
    call.headers.add("Authorization", "Bearer " + join_token);
    call.content_type = "application/json";
    Json asked{{"machine", config.name}};
    // Where this machine has joined before, its present token is what lets it do so again.
    if (const auto present = agent_token(config)) asked["current_token"] = *present;
    call.body = canonical_json(asked);
    PERFRIG_TRY(const HttpResponse response,
                http_request_blocking(url.with_target("/agent/v1/join"), std::move(call), Deadline::in(answer_time)));
    if (response.status / 100 != 2) {
        const auto problem = parse_json(response.body, "the answer");
        std::string detail, remedy;
        if (problem && problem->is_object()) {
            JsonReader in(*problem, "the answer");
            detail = in.string_or("detail", "");
            remedy = in.string_or("remedy", "");
        }
        return fail(kind_of_status(response.status), "join", url.text(),
                    "the controller answered " + std::to_string(response.status) + " " +
                        (detail.empty() ? std::string(reason_phrase(response.status)) : detail),
                    response.status == 401 || response.status == 403
                        ? "ask for a join token: POST /api/v1/tokens with kind join"
                        : remedy);
    }
    PERFRIG_TRY(const Json json, parse_json(response.body, "the answer of " + url.text()));
    JsonReader in(json, "the answer of " + url.text());
    Joined joined{in.string("machine"), config.token_file};
    const std::string token = in.string("token");
    const std::int64_t epoch = in.integer_or("epoch", 0);
    PERFRIG_CHECK(in.finish());
    const std::string folder = std::filesystem::path(config.token_file).parent_path();
    if (!std::filesystem::exists(folder)) {
        std::error_code error;
        std::filesystem::create_directories(folder, error);
        if (error) return fail(ErrorKind::unavailable, "make the folder", folder, error.message());
        PERFRIG_CHECK(give_to_user(folder, config.user));
    }
    PERFRIG_CHECK(write_file_atomically(config.token_file, token + "\n", 0600));
    PERFRIG_CHECK(give_to_user(config.token_file, config.user));
    PERFRIG_CHECK(go_on_from(config, epoch));
    return joined;
}

} // namespace perfrig
