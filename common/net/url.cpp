#include "common/net/url.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <optional>

namespace perfrig {

namespace {

constexpr std::size_t most_url_bytes = 8 << 10;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::uint16_t default_port(UrlScheme scheme) { return scheme == UrlScheme::http || scheme == UrlScheme::ws ? 80 : 443; }

std::string_view name_of(UrlScheme scheme) {
    constexpr std::array<std::string_view, 4> names{"http", "https", "ws", "wss"};
    return names.at(static_cast<std::size_t>(scheme));
}

std::optional<UrlScheme> scheme_of(std::string_view name) {
    for (auto scheme : {UrlScheme::http, UrlScheme::https, UrlScheme::ws, UrlScheme::wss})
        if (name == name_of(scheme)) return scheme;
    return std::nullopt;
}

std::optional<std::uint16_t> port_of(std::string_view text) {
    if (text.empty() || text.size() > 5 || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
    unsigned port = 0;
    std::from_chars(text.data(), text.data() + text.size(), port);
    if (port > 65535) return std::nullopt;
    return static_cast<std::uint16_t>(port);
}

bool is_ipv6(const std::string& host) {
    in6_addr address{};
    return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// RFC 1123 names (underscores too, which container networks use) and IPv4 addresses.
bool is_name(std::string_view host) {
    return !host.empty() && host.size() <= 253 && host.front() != '.' && host.front() != '-' &&
           std::all_of(host.begin(), host.end(),
                       [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; }) &&
           host.find("..") == std::string_view::npos;
}

// RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto at = [&](std::size_t n) {
            return i + n < text.size() ? static_cast<unsigned char>(text[i + n]) : 0U;
        };
        const unsigned first = at(0), second = at(1);
        const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        if (length == 0 || first > 0xF4) return false;
        for (std::size_t n = 1; n < length; ++n)
            if ((at(n) & 0xC0) != 0x80) return false;
        if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
            (first == 0xF4 && second > 0x8F))
            return false;
        i += length;
    }
    return true;
}

struct Why {
    std::string text;
};
struct Authority {
    std::string host;
    std::string_view port; // empty where there is no colon
    bool has_port = false;
};

// "host", "host:port", "[v6]", "[v6]:port"; the reason as an error where it is none of them.
boost::system::result<Authority, Why> split_authority(std::string_view text) {
    Authority out;
    std::string_view rest;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) return Why{"the bracket of an IPv6 address is not closed"};
        out.host = text.substr(1, end - 1);
        if (!is_ipv6(out.host)) return Why{"'" + out.host + "' is not an IPv6 address"};
        rest = text.substr(end + 1);
    } else {
        const auto colon = text.find(':');
        out.host = text.substr(0, colon);
        if (out.host.empty()) return Why{"the host is missing"};
        if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos)
            return Why{"too many colons; an IPv6 address stands in brackets"};
        if (!is_name(out.host)) return Why{"'" + out.host + "' is not a host name"};
        if (colon != std::string_view::npos) rest = text.substr(colon);
    }
    if (rest.empty()) return out;
    if (rest.front() != ':') return Why{"'" + std::string(rest) + "' follows the address"};
    out.has_port = true;
    out.port = rest.substr(1);
    return out;
}

} // namespace

std::string Url::host_header() const {
    std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
    if (port != default_port(scheme)) out += ":" + std::to_string(port);
    return out;
}

std::string Url::text() const { return std::string(name_of(scheme)) + "://" + host_header() + target; }

Url Url::with_target(std::string other) const {
    Url out = *this;
    out.target = std::move(other);
    return out;
}

Result<Url> parse_url(std::string_view text) {
    const auto refuse = [&](std::string why) {
        return fail(ErrorKind::bad_input, "parse the URL", std::string(text.substr(0, 200)), std::move(why),
                    "write http://HOST:PORT/");
    };
    if (text.size() > most_url_bytes) return refuse("it is longer than 8 KiB");
    for (const char c : text)
        if (c <= 0x20 || c >= 0x7f) return refuse("it holds a blank, a control character or a byte beyond ASCII");
    const auto colon = text.find("://");
    if (colon == std::string_view::npos) return refuse("the scheme is missing");
    const auto scheme = scheme_of(text.substr(0, colon));
    if (!scheme) return refuse("the scheme is none of http, https, ws, wss");
    const auto rest = text.substr(colon + 3);
    if (rest.find('#') != std::string_view::npos) return refuse("it has a fragment (#...)");
    const auto slash = rest.find_first_of("/?");
    const auto authority_text = rest.substr(0, slash);
    if (authority_text.find('@') != std::string_view::npos)
        return refuse("it holds user information; credentials go elsewhere");
    auto authority = split_authority(authority_text);
    if (!authority) return refuse(std::move(authority).error().text);

    Url out;
    out.scheme = *scheme;
    out.host = authority->host;
    out.port = default_port(*scheme);
    if (authority->has_port) {
        const auto port = port_of(authority->port);
        if (!port || *port == 0) return refuse("the port is not a number from 1 to 65535");
        out.port = *port;
    }
    if (slash != std::string_view::npos) {
        out.target = rest.substr(slash);
        if (out.target.front() == '?') out.target.insert(0, "/");
    }
    return out;
}

Result<HostPort> parse_host_port(std::string_view text) {
    const auto refuse = [&](std::string why) {
        return fail(ErrorKind::bad_input, "parse the address", std::string(text.substr(0, 200)), std::move(why),
                    "write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080");
    };
    auto authority = split_authority(text);
    if (!authority) return refuse(std::move(authority).error().text);
    if (!authority->has_port) return refuse("the port is missing");
    const auto port = port_of(authority->port);
    if (!port) return refuse("the port is not a number from 0 to 65535");
    HostPort out;
    out.host = authority->host;
    out.port = *port;
    return out;
}

Result<std::string> percent_decode(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return fail(ErrorKind::bad_input, "decode", std::string(text.substr(0, 200)),
                        "the % at byte " + std::to_string(i) + " begins no escape of two hex digits, or one of zero");
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

std::string percent_encode(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += '%';
            out += digits[byte >> 4];
            out += digits[byte & 15];
        }
    }
    return out;
}

Result<TargetParts> parse_target(std::string_view target) {
    const auto refuse = [&](std::string why) {
        return fail(ErrorKind::bad_input, "read the request target", std::string(target.substr(0, 200)),
                    std::move(why));
    };
    if (!target.starts_with('/')) return refuse("it does not start with /");
    if (target.find('#') != std::string_view::npos) return refuse("it has a fragment (#...)");
    TargetParts out;
    const auto mark = target.find('?');
    out.path = target.substr(0, mark);

    std::string_view path = out.path;
    path.remove_prefix(1);
    while (!path.empty()) {
        const auto slash = path.find('/');
        PERFRIG_TRY(auto segment, percent_decode(path.substr(0, slash)));
        if (segment.empty()) return refuse("a path segment is empty");
        if (!is_utf8(segment)) return refuse("the path is not UTF-8");
        if (segment == "." || segment == "..") return refuse("the path holds . or ..");
        out.segments.push_back(std::move(segment));
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    }

    std::string query(mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1));
    std::replace(query.begin(), query.end(), '+', ' ');
    for (std::string_view rest = query; !rest.empty();) {
        const auto end = rest.find('&');
        const auto pair = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        PERFRIG_TRY(auto key, percent_decode(pair.substr(0, equals)));
        PERFRIG_TRY(auto value,
                    percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1)));
        if (key.empty()) return refuse("a query value has no name");
        if (!is_utf8(key) || !is_utf8(value)) return refuse("the query is not UTF-8");
        if (!out.query.emplace(key, std::move(value)).second) return refuse("'" + key + "' is given twice");
    }
    return out;
}

bool is_loopback(std::string_view host) {
    const std::string text(host);
    if (text == "localhost" || text == "::1") return true;
    in_addr v4{};
    if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    in6_addr v6{};
    if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

} // namespace perfrig
