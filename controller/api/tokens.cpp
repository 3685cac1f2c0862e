#include "controller/db/tokens.hpp"

#include "common/base/hash.hpp"
#include "controller/api/handlers.hpp"
#include "controller/api/json_views.hpp"
#include "controller/api/request.hpp"
#include "controller/api/token_cache.hpp"
#include "controller/db/events.hpp"

#include <algorithm>

namespace perfrig::api {

namespace {

Result<std::string> revoke(db::Connection& c, const Request& request) {
    const auto& prefix = request.parameters.at("token");
    const bool hex = std::all_of(prefix.begin(), prefix.end(), [](char digit) {
        return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
    });
    if (!hex || prefix.size() < 8 || prefix.size() > 64)
        return fail(ErrorKind::not_found, "find the token", prefix, "name it by 8 or more digits of its hash");
    PERFRIG_TRY(const auto tokens, db::tokens::list(c));
    std::vector<std::string> found;
    for (const auto& token : tokens)
        if (token.hash.starts_with(prefix) && !token.revoked_utc_ns) found.push_back(token.hash);
    if (found.empty()) return fail(ErrorKind::not_found, "find the token", prefix, "no token has that hash");
    if (found.size() > 1)
        return fail(ErrorKind::conflict, "revoke the token", prefix, "more than one token begins so",
                    "give more digits");
    PERFRIG_CHECK(db::tokens::revoke(c, found.front()));
    PERFRIG_CHECK(db::events::add(c, actor(request), "token/" + found.front().substr(0, 8), "revoked"));
    return found.front();
}

} // namespace

Result<HttpResponse> list_tokens(db::Connection& c, const Request&) {
    PERFRIG_TRY(const auto tokens, db::tokens::list(c));
    Json items = Json::array();
    for (const auto& token : tokens) items.push_back(to_json(token));
    return json_answer({{"items", items}});
}

Result<HttpResponse> create_token(db::Connection& c, const Request& request) {
    PERFRIG_TRY(const auto body, json_body(request));
    JsonReader in(body, "the request body");
    const auto word = in.string("kind");
    const auto label = in.string_or("label", "");
    PERFRIG_CHECK(in.finish());
    const auto kind = model::parse_token_kind(word);
    if (!kind || *kind == model::TokenKind::agent)
        return problem(400, "kind must be user, join or scrape; agents get theirs by joining");
    if (label.size() > 200) return problem(400, "label is longer than 200 bytes");
    const auto token = random_hex(32);
    const auto hash = sha256_hex(token);
    PERFRIG_CHECK(db::tokens::create(c, hash, *kind, label));
    PERFRIG_CHECK(db::events::add(c, actor(request), "token/" + hash.substr(0, 8), "created",
                                  {{"kind", word}, {"label", label}}));
    model::Token made;
    made.hash = hash;
    made.kind = *kind;
    made.label = label;
    made.created_utc_ns = SystemClock().utc_ns();
    Json json = to_json(made);
    json["token"] = token;
    auto response = json_answer(json, 201);
    response.headers.set("Cache-Control", "no-store");
    return response;
}

Async revoke_token(Services& services, Shared request) {
    auto work = [request](db::Connection& c) { return revoke(c, *request); };
    const auto hash = co_await in_store(services, work);
    if (!hash) co_return answer_for(hash.error(), *request);
    services.tokens.forget(*hash);
    services.agents.registry.cut_token(*hash,
                                       "its token was revoked: join this machine again, then start its agent anew");
    HttpResponse response;
    response.status = 204;
    co_return response;
}

} // namespace perfrig::api
