#include "controller/api/access.hpp"

namespace perfrig::api {

int decide_access(PathFit fit, TokenKinds wanted, bool below_agent_path, const std::optional<Caller>& caller) {
    if (fit == PathFit::fits && wanted.open()) return 0;
    if (!caller) return 401;
    // An agent's token is on a machine that runs other people's programs: it opens nothing else, known or not.
    if (caller->kind == model::TokenKind::agent && !below_agent_path) return 403;
    if (fit == PathFit::no_such_path) return 404;
    if (fit == PathFit::wrong_method) return 405;
    return wanted.has(caller->kind) ? 0 : 403;
}

} // namespace perfrig::api
