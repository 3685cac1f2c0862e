// HTTP requests and responses as plain values: what handlers and callers see. No networking header is included here.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perfrig {

// Header fields in their order; names compare without regard to case.
class HttpHeaders {
  public:
    HttpHeaders() = default;
    HttpHeaders(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

    void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
    void set(std::string_view name, std::string value);           // replaces every field of that name
    std::optional<std::string> find(std::string_view name) const; // the first of that name
    std::string value_or(std::string_view name, std::string fallback) const;
    bool has(std::string_view name) const { return find(name).has_value(); }
    const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

  private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

// A request as a server's handler gets it: already checked (see parse_target in url.hpp) and read whole.
struct HttpRequest {
    std::string method;                       // "GET", upper case as sent
    std::string target;                       // "/api/v1/runs/a%2Fb?limit=5", as sent
    std::string path;                         // "/api/v1/runs/a%2Fb", as sent
    std::vector<std::string> segments;        // {"api", "v1", "runs", "a/b"}, decoded
    std::map<std::string, std::string> query; // {"limit": "5"}, decoded; no key twice
    HttpHeaders headers;
    std::string body;
    std::string peer_address; // "127.0.0.1", without the port
    std::uint16_t peer_port = 0;

    // The token of "Authorization: Bearer TOKEN"; nothing where the header is missing or of another form.
    std::optional<std::string> bearer_token() const;
};

// A response, both as handlers give it and as clients get it. Content-Length, Connection and Date are the server's
// business: leave them out. `content_type` stands for the Content-Type header; empty: none is sent.
struct HttpResponse {
    int status = 200;
    HttpHeaders headers;
    std::string content_type;
    std::string body;
    // Set by a handler that knows who asked (a good token): the server keeps this connection when it must make room for
    // another. Never sent.
    bool known_peer = false;
};

HttpResponse text_response(int status, std::string body, std::string content_type = "text/plain; charset=utf-8");
HttpResponse json_response(int status, std::string json_text); // application/json

// RFC 9457: {"type":"about:blank","title":...,"status":...,"detail":...} as application/problem+json. The title is the
// status's standard phrase. Bytes in `detail` that aren't UTF-8 are replaced.
HttpResponse problem_response(int status, std::string_view detail);
// The same from an Error, with status_of(kind) and remedy as an extra member. For ErrorKind::internal log it yourself.
HttpResponse problem_response(const Error& error);
// bad_input 400, not_found 404, conflict 409, forbidden 403, unavailable 503, timed_out 504, internal 500.
int status_of(ErrorKind kind);
// The reverse, for clients that turn a refusal into an Error: 401 and 403 forbidden, 404 and 410 not_found, 409, 412
// and 428 conflict, 408 and 504 timed_out, 429, 502 and 503 unavailable, other 4xx bad_input, else internal.
ErrorKind kind_of_status(int status);

std::string_view reason_phrase(int status); // "Not Found"; "Unknown" for what has none

} // namespace perfrig
