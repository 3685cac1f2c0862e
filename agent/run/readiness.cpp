#include "agent/run/readiness.hpp"

#include "common/base/unique_fd.hpp"
#include "common/net/http_client.hpp"
#include "common/net/url.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace perfrig {

namespace {

Result<void> connect_once(const sockaddr* address, socklen_t length, const std::string& target, Deadline deadline) {
    const UniqueFd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail_errno(errno, "connect to", target);
    if (::connect(fd.get(), address, length) == 0) return {};
    if (errno != EINPROGRESS) return fail_errno(errno, "connect to", target);
    pollfd one = {fd.get(), POLLOUT, 0};
    if (::poll(&one, 1, static_cast<int>(deadline.left().count())) <= 0)
        return fail(ErrorKind::timed_out, "connect to", target, "no answer in time");
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return fail_errno(error, "connect to", target);
    return {};
}

} // namespace

Result<void> check_tcp(const std::string& target, Deadline deadline) {
    PERFRIG_TRY(HostPort at, parse_host_port(target));
    const std::string host = at.host == "localhost" ? "127.0.0.1" : at.host;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(at.port);
    if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1)
        return connect_once(reinterpret_cast<sockaddr*>(&v4), sizeof v4, target, deadline);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(at.port);
    if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1)
        return connect_once(reinterpret_cast<sockaddr*>(&v6), sizeof v6, target, deadline);
    return fail(ErrorKind::bad_input, "connect to", target, "it is neither an address nor localhost",
                "write an IP address: the agent looks up no names");
}

Result<void> check_http(const std::string& url, Deadline deadline) {
    PERFRIG_TRY(const Url parsed, parse_url(url));
    HttpCall call;
    call.most_response_bytes = 8 << 20;
    PERFRIG_TRY(const HttpResponse response, http_request_blocking(parsed, std::move(call), deadline));
    if (response.status >= 200 && response.status < 400) return {};
    return fail(ErrorKind::unavailable, "get", url, "it answered " + std::to_string(response.status));
}

} // namespace perfrig
