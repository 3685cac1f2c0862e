#include "agent/run/free_ports.hpp"

#include "common/base/unique_fd.hpp"

#include <cstdio>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>

namespace perfrig {

namespace {

// Binds on all addresses, as a service may; the socket keeps the port until all names have theirs.
UniqueFd try_bind(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd) {
        const int off = 0; // IPv4 too
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(port);
        if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
        return {};
    }
    fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); // a machine without IPv6
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (fd && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    return {};
}

} // namespace

PortRange ports_outside(std::string_view ephemeral_range) {
    int first = 0, last = 0;
    if (std::sscanf(std::string(ephemeral_range).c_str(), "%d %d", &first, &last) != 2 || first < 1 || last > 65535 ||
        first > last)
        return {10'000, 32'767};
    const PortRange below{10'000, first - 1}, above{last + 1, 65'535};
    const PortRange larger = below.last - below.first >= above.last - above.first ? below : above;
    return larger.last - larger.first >= 100 ? larger : PortRange{10'000, 65'535};
}

Result<std::map<std::string, std::uint16_t>> find_free_ports(const FileTree& tree,
                                                             const std::vector<std::string>& names) {
    std::map<std::string, std::uint16_t> ports;
    if (names.empty()) return ports;
    const auto ephemeral = tree.read_line("/proc/sys/net/ipv4/ip_local_port_range");
    const PortRange range = ports_outside(ephemeral ? *ephemeral : std::string());
    std::random_device random;
    std::uniform_int_distribution<int> any(range.first, range.last);
    std::vector<UniqueFd> held;
    for (const std::string& name : names) {
        for (int attempt = 0; attempt < 1'000 && !ports.contains(name); ++attempt) {
            const auto port = static_cast<std::uint16_t>(any(random));
            UniqueFd fd = try_bind(port);
            if (!fd) continue;
            held.push_back(std::move(fd));
            ports[name] = port;
        }
        if (!ports.contains(name))
            return fail(ErrorKind::unavailable, "find a free port for", name, "a thousand tries found none");
    }
    return ports;
}

} // namespace perfrig
