// URLs and addresses as people and peers write them, parsed strictly: what is not understood is refused, never
// guessed at. Pure. Grammar: RFC 3986 without user info and fragments, which have no meaning between our programs.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

enum class UrlScheme { http, https, ws, wss };

struct Url {
    UrlScheme scheme = UrlScheme::http;
    std::string host; // a name or an address; IPv6 without its brackets
    std::uint16_t port = 80;
    std::string target = "/"; // path and query as sent on the wire; starts with '/'

    bool secure() const { return scheme == UrlScheme::https || scheme == UrlScheme::wss; }
    std::string host_header() const;           // what the Host header says: brackets, and the port unless default
    std::string text() const;                  // the whole URL, normalised
    Url with_target(std::string target) const; // the same server, another path and query
    friend bool operator==(const Url&, const Url&) = default;
};

// "http://host[:port][/path][?query]", also https, ws, wss. Refuses user info, fragments, blanks, controls, bytes
// beyond ASCII, port 0, more than 8 KiB.
Result<Url> parse_url(std::string_view text);

struct HostPort {
    std::string host; // IPv6 without its brackets
    std::uint16_t port = 0;
    friend bool operator==(const HostPort&, const HostPort&) = default;
};
// "127.0.0.1:8080", "lab-3:0", "[::1]:9090". Port 0 is allowed: a listener takes a free one.
Result<HostPort> parse_host_port(std::string_view text);

// %XX becomes the byte; anything after a % that isn't two hex digits is refused, so is %00.
Result<std::string> percent_decode(std::string_view text);
// Everything but RFC 3986's unreserved characters becomes %XX: safe for one path segment or one query value.
std::string percent_encode(std::string_view text);

// A request target ("/api/v1/runs/7?limit=5") taken apart.
struct TargetParts {
    std::string path;                         // as sent, without the query
    std::vector<std::string> segments;        // between the slashes, decoded one by one ("a%2Fb" is one segment)
    std::map<std::string, std::string> query; // decoded, '+' as blank (as forms and browsers send it)
};
// Refuses bad escapes, empty segments within the path, "." and "..", and a query key given twice.
Result<TargetParts> parse_target(std::string_view target);

// 127.0.0.0/8, ::1 and "localhost": what only this machine can reach.
bool is_loopback(std::string_view host);

} // namespace perfrig
