// Who may do what, as pure decisions. A token has one kind; a route names the kinds that it takes; whoever has no good
// token learns nothing, not even which paths there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfrig::api {

enum class TokenKind : std::uint8_t { user = 1, agent = 2, join = 4, scrape = 8 };
std::string_view to_string(TokenKind kind);
std::optional<TokenKind> token_kind_from(std::string_view text);

// A set of kinds. Empty: the route is open to all.
struct TokenKinds {
    std::uint8_t bits = 0;
    constexpr TokenKinds() = default;
    constexpr TokenKinds(TokenKind kind) : bits(static_cast<std::uint8_t>(kind)) {}
    constexpr bool has(TokenKind kind) const { return (bits & static_cast<std::uint8_t>(kind)) != 0; }
    constexpr bool open() const { return bits == 0; }
    friend constexpr TokenKinds operator|(TokenKinds a, TokenKinds b) {
        TokenKinds both;
        both.bits = static_cast<std::uint8_t>(a.bits | b.bits);
        return both;
    }
    friend constexpr bool operator==(TokenKinds, TokenKinds) = default;
};
constexpr TokenKinds operator|(TokenKind a, TokenKind b) { return TokenKinds(a) | TokenKinds(b); }

// Whose request it is, once its token was looked up.
struct Caller {
    TokenKind kind = TokenKind::user;
    std::string token_hash;
    std::int64_t machine_id = 0; // of an agent's token
    std::string machine;
};

enum class PathFit { no_such_path, wrong_method, fits };

// The status that refuses the request, or 0: let it in. `wanted` counts where the path fits. A missing, unknown or
// revoked token is no caller.
int decide_access(PathFit fit, TokenKinds wanted, bool below_agent_path, const std::optional<Caller>& caller);

} // namespace perfrig::api
