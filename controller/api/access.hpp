// Who may do what, as pure decisions. A token has one kind; a route names the kinds that it takes; whoever has no good
// token learns nothing, not even which paths there are.
#pragma once

#include "controller/model/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace perfrig::api {

// A set of kinds. Empty: the route is open to all.
struct TokenKinds {
    std::uint8_t bits = 0;
    constexpr TokenKinds() = default;
    constexpr TokenKinds(model::TokenKind kind) : bits(bit(kind)) {}
    constexpr bool has(model::TokenKind kind) const { return (bits & bit(kind)) != 0; }
    constexpr bool open() const { return bits == 0; }
    friend constexpr TokenKinds operator|(TokenKinds a, TokenKinds b) {
        TokenKinds both;
        both.bits = static_cast<std::uint8_t>(a.bits | b.bits);
        return both;
    }
    friend constexpr bool operator==(TokenKinds, TokenKinds) = default;

  private:
    static constexpr std::uint8_t bit(model::TokenKind kind) {
        return static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
    }
};

// Whose request it is, once its token was looked up.
struct Caller {
    model::TokenKind kind = model::TokenKind::user;
    std::string token_hash;
    model::Id machine_id = 0; // of an agent's token
    std::string machine;
    std::string label; // of the token, as whoever made it called it; may be empty
};

enum class PathFit { no_such_path, wrong_method, fits };

// The status that refuses the request, or 0: let it in. `wanted` counts where the path fits. A missing, unknown or
// revoked token is no caller.
int decide_access(PathFit fit, TokenKinds wanted, bool below_agent_path, const std::optional<Caller>& caller);

} // namespace perfrig::api
