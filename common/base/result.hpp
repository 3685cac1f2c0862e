// Expected failure. A function that can fail returns Result<T>; exceptions are for bugs and failed start-up.
// An Error is written for the person who must act on it: what was tried, on what, why it failed, what to do.
#pragma once

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace perfrig {

// What kind of failure it is decides who acts: HTTP statuses and exit codes are derived from it.
enum class ErrorKind {
    bad_input,   // the caller sent something wrong; the same again will fail again
    not_found,   // the thing named does not exist
    conflict,    // it exists, in a state that forbids this
    forbidden,   // not allowed to this caller
    unavailable, // a peer, a file or a service could not be reached; may pass
    timed_out,   // a deadline passed
    internal,    // a bug or a broken invariant
};

struct Error {
    ErrorKind kind = ErrorKind::internal;
    std::string tried;  // "read the profile"
    std::string on;     // "/etc/perfrig/agent.yaml:12:3"; may be empty
    std::string why;    // "no such file"
    std::string remedy; // "write one, or name another with --config"; may be empty

    // One line: "can't read the profile /etc/perfrig/agent.yaml: no such file (write one, ...)".
    std::string text() const;
};

template <class T> using Result = boost::system::result<T, Error>;

// Shorthands: return fail(ErrorKind::bad_input, "parse the CPU list", text, "3-1 runs backwards", "write 1-3");
inline Error fail(ErrorKind kind, std::string tried, std::string on, std::string why, std::string remedy = {}) {
    return {kind, std::move(tried), std::move(on), std::move(why), std::move(remedy)};
}
// The same, with errno's text as the reason.
Error fail_errno(int error_number, std::string tried, std::string on, std::string remedy = {});

// .value() on a failed Result is a bug in the caller; this is what it throws.
struct UnhandledError : std::runtime_error {
    explicit UnhandledError(const Error& e) : std::runtime_error(e.text()), error(e) {}
    Error error;
};

[[noreturn]] inline void throw_exception_from_error(const Error& e, const boost::source_location&) {
    throw UnhandledError(e);
}

std::string_view to_string(ErrorKind kind);

} // namespace perfrig

// PERFRIG_TRY(auto value, f()): unwraps, or returns the error from the enclosing function.
// PERFRIG_CHECK(f()): for Result<void>. In coroutines use the CO_ forms.
#define PERFRIG_CONCAT_2(a, b) a##b
#define PERFRIG_CONCAT(a, b) PERFRIG_CONCAT_2(a, b)
#define PERFRIG_TRY_IMPL(ret, tmp, decl, ...)                                                                          \
    auto tmp = (__VA_ARGS__);                                                                                          \
    if (!tmp) ret std::move(tmp).error();                                                                              \
    decl = *std::move(tmp)
#define PERFRIG_TRY(decl, ...) PERFRIG_TRY_IMPL(return, PERFRIG_CONCAT(perfrig_try_, __LINE__), decl, __VA_ARGS__)
#define PERFRIG_CO_TRY(decl, ...) PERFRIG_TRY_IMPL(co_return, PERFRIG_CONCAT(perfrig_try_, __LINE__), decl, __VA_ARGS__)
#define PERFRIG_CHECK(...)                                                                                             \
    do {                                                                                                               \
        if (auto perfrig_check = (__VA_ARGS__); !perfrig_check) return std::move(perfrig_check).error();               \
    } while (false)
#define PERFRIG_CO_CHECK(...)                                                                                          \
    do {                                                                                                               \
        if (auto perfrig_check = (__VA_ARGS__); !perfrig_check) co_return std::move(perfrig_check).error();            \
    } while (false)
