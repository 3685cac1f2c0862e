#include "common/net/http_types.hpp"

#include "common/base/json.hpp"

#include <algorithm>
#include <array>

namespace perfrig {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

struct Phrase {
    int status;
    std::string_view text;
};
// RFC 9110, RFC 6585.
constexpr std::array phrases{Phrase{200, "OK"},
                             Phrase{201, "Created"},
                             Phrase{202, "Accepted"},
                             Phrase{204, "No Content"},
                             Phrase{206, "Partial Content"},
                             Phrase{301, "Moved Permanently"},
                             Phrase{302, "Found"},
                             Phrase{303, "See Other"},
                             Phrase{304, "Not Modified"},
                             Phrase{307, "Temporary Redirect"},
                             Phrase{308, "Permanent Redirect"},
                             Phrase{400, "Bad Request"},
                             Phrase{401, "Unauthorized"},
                             Phrase{403, "Forbidden"},
                             Phrase{404, "Not Found"},
                             Phrase{405, "Method Not Allowed"},
                             Phrase{406, "Not Acceptable"},
                             Phrase{408, "Request Timeout"},
                             Phrase{409, "Conflict"},
                             Phrase{410, "Gone"},
                             Phrase{411, "Length Required"},
                             Phrase{412, "Precondition Failed"},
                             Phrase{413, "Content Too Large"},
                             Phrase{415, "Unsupported Media Type"},
                             Phrase{416, "Range Not Satisfiable"},
                             Phrase{417, "Expectation Failed"},
                             Phrase{422, "Unprocessable Content"},
                             Phrase{426, "Upgrade Required"},
                             Phrase{428, "Precondition Required"},
                             Phrase{429, "Too Many Requests"},
                             Phrase{431, "Request Header Fields Too Large"},
                             Phrase{500, "Internal Server Error"},
                             Phrase{501, "Not Implemented"},
                             Phrase{502, "Bad Gateway"},
                             Phrase{503, "Service Unavailable"},
                             Phrase{504, "Gateway Timeout"},
                             Phrase{507, "Insufficient Storage"}};

HttpResponse problem(int status, std::string_view detail, std::string_view remedy) {
    Json body{{"type", "about:blank"}, {"title", reason_phrase(status)}, {"status", status}, {"detail", detail}};
    if (!remedy.empty()) body["remedy"] = remedy;
    HttpResponse out;
    out.status = status;
    out.content_type = "application/problem+json";
    out.body = body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return out;
}

} // namespace

void HttpHeaders::set(std::string_view name, std::string value) {
    std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
    add(std::string(name), std::move(value));
}

std::optional<std::string> HttpHeaders::find(std::string_view name) const {
    for (const auto& [key, value] : fields_)
        if (same_name(key, name)) return value;
    return std::nullopt;
}

std::string HttpHeaders::value_or(std::string_view name, std::string fallback) const {
    auto value = find(name);
    return value ? *std::move(value) : std::move(fallback);
}

std::optional<std::string> HttpRequest::bearer_token() const {
    const auto value = headers.find("Authorization");
    constexpr std::string_view scheme = "Bearer ";
    if (!value || value->size() <= scheme.size() || !same_name(value->substr(0, scheme.size()), scheme))
        return std::nullopt;
    std::string token = value->substr(scheme.size());
    if (token.find_first_of(" \t,") != std::string::npos) return std::nullopt;
    return token;
}

HttpResponse text_response(int status, std::string body, std::string content_type) {
    HttpResponse out;
    out.status = status;
    out.content_type = std::move(content_type);
    out.body = std::move(body);
    return out;
}

HttpResponse json_response(int status, std::string json_text) {
    return text_response(status, std::move(json_text), "application/json");
}

HttpResponse problem_response(int status, std::string_view detail) { return problem(status, detail, {}); }

HttpResponse problem_response(const Error& error) {
    Error plain = error;
    plain.remedy.clear(); // stands in a member of its own
    return problem(status_of(error.kind), plain.text(), error.remedy);
}

int status_of(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::bad_input: return 400;
    case ErrorKind::not_found: return 404;
    case ErrorKind::conflict: return 409;
    case ErrorKind::forbidden: return 403;
    case ErrorKind::unavailable: return 503;
    case ErrorKind::timed_out: return 504;
    case ErrorKind::internal: return 500;
    }
    return 500;
}

ErrorKind kind_of_status(int status) {
    switch (status) {
    case 401:
    case 403: return ErrorKind::forbidden;
    case 404:
    case 410: return ErrorKind::not_found;
    case 409:
    case 412:
    case 428: return ErrorKind::conflict;
    case 408:
    case 504: return ErrorKind::timed_out;
    case 429:
    case 502:
    case 503: return ErrorKind::unavailable;
    default: return status >= 400 && status < 500 ? ErrorKind::bad_input : ErrorKind::internal;
    }
}

std::string_view reason_phrase(int status) {
    for (const auto& phrase : phrases)
        if (phrase.status == status) return phrase.text;
    return "Unknown";
}

} // namespace perfrig
